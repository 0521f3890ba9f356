// The official OpenAI SDK for JavaScript, told what to do.
//
//   node gateway.mjs BASE_URL DEED '{"headers": {…}, "body": {…}}'
//
// Prints one line: what came of it, or {"error": {status, code, message}}.
import OpenAI from "openai";

const [baseURL, deed, given] = process.argv.slice(2);
const { headers = {}, body = {} } = JSON.parse(given);
const client = new OpenAI({ baseURL, apiKey: "anything", defaultHeaders: headers, maxRetries: deed === "retry" ? 2 : 0 });

const DEEDS = {
  models: async () => (await client.models.list()).data.map((model) => model.id),
  create: async () => (await client.chat.completions.create(body)).choices[0],
  retry: async () => (await client.chat.completions.create(body)).choices[0],
  stream: async () => {
    let text = "";
    let finish = null;
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      text += chunk.choices[0]?.delta?.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    return { text, finish };
  },
  cancel: async () => {
    const stream = await client.chat.completions.create({ ...body, stream: true });
    for await (const _ of stream) {
      stream.controller.abort();
      break;
    }
    return "canceled";
  },
};

try {
  console.log(JSON.stringify(await DEEDS[deed]()));
} catch (error) {
  console.log(JSON.stringify({ error: { status: error.status ?? null, code: error.code ?? null, message: error.message } }));
}
