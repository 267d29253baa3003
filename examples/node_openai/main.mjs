// The OpenAI client as it is. Its base URL and its key, which it takes from the environment, are those of the memory:
//
//     npm ci
//     export OPENAI_BASE_URL=http://127.0.0.1:8321/openai/v1 OPENAI_API_KEY="$(cat ../../.memory/api-key)"
//     node main.mjs monday "I have a dog called Bruno."
//     node main.mjs friday "What is my dog called?" --stream
//
// The API adds what is remembered and has the model of MEMORY_COMPLETIONS__BASE_URL answer.

import OpenAI from "openai";

const openai = new OpenAI();
const [session, text, stream] = process.argv.slice(2);
const request = {
  model: "gpt-5-mini",
  user: "noa",
  metadata: { session },
  messages: [{ role: "user", content: text }],
};

if (stream === "--stream") {
  for await (const chunk of await openai.chat.completions.create({ ...request, stream: true })) {
    process.stdout.write(chunk.choices[0]?.delta.content ?? "");
  }
  process.stdout.write("\n");
} else {
  const completion = await openai.chat.completions.create(request);
  console.log(completion.choices[0].message.content);
}
