// Clients of OpenAI's API, told what to do: OpenAI's SDK, and two front ends, which call as their sources do: SillyTavern by `fetch`,
// with every parameter in the body, an abort of the connection and another try only after 429; LibreChat by LangChain.
//
//   node gateway.mjs CLIENT BASE_URL DEED '{"headers": {…}, "body": {…}}'
//
// Prints one line: what came of it, or {"error": {status, code, message}}.
import { ChatOpenAI } from "@langchain/openai";
import OpenAI from "openai";

const [client, baseURL, deed, given] = process.argv.slice(2);
const { headers = {}, body = {} } = JSON.parse(given);
const retries = deed === "retry" ? 2 : 0;

// Text and end of a stream of chunks; at a cancel, its first piece is enough.
const streamed = async (chunks, abort) => {
  let [text, finish] = ["", null];
  for await (const choice of chunks) {
    if (deed === "cancel") {
      abort();
      return "canceled";
    }
    text += choice?.delta?.content ?? "";
    finish = choice?.finish_reason ?? finish;
  }
  return { text, finish };
};

const openai = () => {
  const sdk = new OpenAI({ baseURL, apiKey: "anything", defaultHeaders: headers, maxRetries: retries });
  const create = async () => (await sdk.chat.completions.create(body)).choices[0];
  const stream = async () => {
    const answer = await sdk.chat.completions.create({ ...body, stream: true });
    const choices = async function* () { for await (const chunk of answer) yield chunk.choices[0]; };
    return streamed(choices(), () => answer.controller.abort());
  };
  return { models: async () => (await sdk.models.list()).data.map((model) => model.id), create, retry: create, stream, cancel: stream };
};

const sillytavern = () => {
  const ours = { "Content-Type": "application/json", Authorization: "Bearer anything", ...headers };
  const sampling = { temperature: 1, max_tokens: 300, presence_penalty: 0, frequency_penalty: 0, top_p: 1, stop: ["\nUser:"], logit_bias: {}, n: undefined };
  const asked = async (signal, stream) => {
    const sent = JSON.stringify({ ...sampling, stream, ...body });
    for (let tries = retries; ; tries -= 1) {
      const answer = await fetch(`${baseURL}/chat/completions`, { method: "post", headers: ours, body: sent, signal });
      if (answer.ok) return answer;
      if (answer.status !== 429 || tries <= 0) {
        const { error } = await answer.json();
        throw Object.assign(new Error(error.message), { status: answer.status, code: error.code });
      }
    }
  };
  const events = async function* (stream) {
    let rest = "";
    for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop();
      for (const line of lines.filter((each) => each.startsWith("data: "))) {
        if (line === "data: [DONE]") return;
        yield JSON.parse(line.slice(6)).choices[0];
      }
    }
  };
  const create = async () => (await (await asked(undefined, false)).json()).choices[0];
  const stream = async () => {
    const controller = new AbortController();
    return streamed(events((await asked(controller.signal, true)).body), () => controller.abort());
  };
  const models = async () => (await (await fetch(`${baseURL}/models`, { headers: ours })).json()).data.map((model) => model.id);
  return { models, create, retry: create, stream, cancel: stream };
};

const librechat = () => {
  const { messages, model, tools, ...rest } = body;
  const configuration = { baseURL, defaultHeaders: headers };
  const chat = new ChatOpenAI({ model, apiKey: "anything", user: "66a0c0ffee", streamUsage: true, maxRetries: retries, configuration, ...rest });
  const bound = tools ? chat.bindTools(tools) : chat;
  const choice = (message) => ({
    finish_reason: message.response_metadata.finish_reason,
    message: {
      content: message.content,
      tool_calls: message.tool_calls?.map(({ id, name, args }) => ({ id, type: "function", function: { name, arguments: JSON.stringify(args) } })),
    },
  });
  const create = async () => choice(await bound.invoke(messages));
  const stream = async () => {
    const controller = new AbortController();
    const chunks = await bound.stream(messages, { signal: controller.signal });
    const choices = async function* () {
      for await (const chunk of chunks) yield { delta: { content: chunk.content }, finish_reason: chunk.response_metadata.finish_reason };
    };
    return streamed(choices(), () => controller.abort());
  };
  const models = async () => (await (await fetch(`${baseURL}/models`, { headers: { Authorization: "Bearer anything" } })).json()).data.map((each) => each.id);
  return { models, create, retry: create, stream, cancel: stream };
};

try {
  console.log(JSON.stringify(await { openai, sillytavern, librechat }[client]()[deed]()));
} catch (error) {
  console.log(JSON.stringify({ error: { status: error.status ?? null, code: error.code ?? error.error?.code ?? null, message: error.message } }));
}
