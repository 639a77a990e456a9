"""Language models' answers: adjusting their scores, against what people use for it."""
