"""How values are compared: text with text, numbers in text, JSON values, and numbers with thresholds.

Each question has one function here, and every grader, metric, rule, assertion, gate, and page calls it.
"""
