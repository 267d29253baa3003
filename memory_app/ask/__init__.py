"""Ask: a question answered over memory by the agent's language model, each sentence with what it rests on."""
