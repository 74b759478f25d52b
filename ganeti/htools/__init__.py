"""The programs that ask the placement model: hbal, hspace, hail and their siblings."""
