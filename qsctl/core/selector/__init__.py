"""Sample selectors [QS 5.2.2]: grammar and parser, expression tree, and evaluator."""
