"""Relations between the participants of a dialogue: the paper's study on DialogRE."""
