// One call of an unchanged OpenAI client: reads the request as JSON, and prints what the client makes of the answer.

import { readFileSync } from "node:fs";
import OpenAI from "openai";

const openai = new OpenAI();
const request = JSON.parse(readFileSync(0, "utf8"));
let text = "";
let degraded = null;
try {
  const { data, response } = await openai.chat.completions.create(request).withResponse();
  degraded = response.headers.get("x-memory-degraded");
  if (request.stream) {
    for await (const chunk of data) text += chunk.choices[0]?.delta.content ?? "";
  } else {
    text = data.choices[0].message.content;
  }
  console.log(JSON.stringify({ text, degraded }));
} catch (error) {
  if (!(error instanceof OpenAI.APIError)) throw error;
  const { status, type, message } = error;
  console.log(JSON.stringify({ text, degraded, error: error.constructor.name, status, type, message }));
}
