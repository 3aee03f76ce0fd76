# A conversation that was held already, judged by two metrics: python judged.py openai:gpt-4.1
import sys

from vivavoce.metrics import evaluate_conversation

TALK = [
    {"role": "user", "content": "Hello, I would like two tickets for Friday."},
    {"role": "assistant", "content": "Gladly. Standing or seated?"},
    {"role": "user", "content": "Seated, please."},
    {"role": "assistant", "content": "Two seated tickets for Friday are 120 euros."},
]
print(evaluate_conversation(TALK, ["turn_relevancy", "knowledge_retention"], model=sys.argv[1]))
