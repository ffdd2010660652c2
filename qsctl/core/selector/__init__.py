"""Sample selectors [QS 5.2.2]: grammar, expression tree and evaluator apart."""
