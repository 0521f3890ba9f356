// A client made with one of the official TypeScript SDKs, told what to do line by line.
//
//   node driver.mjs v1|v2 URL '{"headers": {…}, "era": "auto" | "legacy", "sessionId": "…"}'
//   node driver.mjs v1|v2 stdio '{"stdio": {"command": "…", "args": […], "env": {…}}, "era": …}'
//
// Reads {"do": …, …} from stdin, one object a line, and answers each with one line: {"answer": …} or {"error": {code, message}}.
import { createInterface } from "node:readline";

const [sdk, url, options] = process.argv.slice(2);
const { headers = {}, era = "auto", sessionId, stdio } = JSON.parse(options);
const ABOUT = { name: "driver", version: "1" };

const transported = (Http, Stdio) =>
  stdio ? new Stdio({ stderr: "ignore", ...stdio }) : new Http(new URL(url), { requestInit: { headers }, sessionId });

const MAKERS = {
  async v1() {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    const { StdioClientTransport } = await import("@modelcontextprotocol/sdk/client/stdio.js");
    return [new Client(ABOUT), transported(StreamableHTTPClientTransport, StdioClientTransport)];
  },
  async v2() {
    const { Client, StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const { StdioClientTransport } = await import("@modelcontextprotocol/client/stdio");
    return [new Client(ABOUT, { versionNegotiation: { mode: era } }), transported(StreamableHTTPClientTransport, StdioClientTransport)];
  },
};

const [client, transport] = await MAKERS[sdk]();

const DEEDS = {
  connect: async () => {
    await client.connect(transport);
    const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
    return { version, server: client.getServerVersion?.() ?? null };
  },
  tools: async () => (await client.listTools()).tools,
  resources: async () => (await client.listResources()).resources,
  prompts: async () => (await client.listPrompts()).prompts,
  read: async ({ uri }) => await client.readResource({ uri }),
  prompt: async ({ name, arguments: given }) => await client.getPrompt({ name, arguments: given }),
  call: async ({ name, arguments: given }) => await client.callTool({ name, arguments: given }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const step = JSON.parse(line);
  let told;
  try {
    told = { answer: await DEEDS[step.do](step) };
  } catch (error) {
    told = { error: { code: error.code ?? null, message: String(error.message) } };
  }
  process.stdout.write(JSON.stringify(told) + "\n");
}
await client.close();
