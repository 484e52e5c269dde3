#REMUDA --workers 2..4
