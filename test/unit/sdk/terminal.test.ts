/** Attaching to a terminal with the SDK: at the service's address, with its trusted certificates, and until its caller cancels. */
import { afterEach, expect, test, vi } from "vitest";
import { Roomd } from "../../../sdk/typescript/src/index.ts";
import { issue } from "../../harness/issued-certificate.ts";

const WS_PATH = "/v1/rooms/a/sandboxes/w/terminals/t/ws";
const TICKET = { ws_path: WS_PATH, token: "tkn" };
let server: Bun.Server<undefined>;
let requests: string[] = [];
let received: string[] = [];

afterEach(async () => {
  requests = [];
  received = [];
  await server.stop(true);
});

/** A service below a path. If `lets` is false, an attaching client waits. */
function serve({ lets = true, tls }: { lets?: boolean; tls?: { key: string; cert: string } } = {}): string {
  server = Bun.serve({
    hostname: "localhost",
    port: 0,
    ...(tls ? { tls } : {}),
    fetch: (request, own) => {
      requests.push(new URL(request.url).pathname);
      if (request.headers.get("upgrade") === null) return Response.json(TICKET);
      if (!lets) return new Promise<never>(() => {});
      return own.upgrade(request, { headers: { "Sec-WebSocket-Protocol": "roomd.terminal" } })
        ? undefined
        : new Response();
    },
    websocket: {
      open: (socket) => void socket.send(new Uint8Array([104, 105])),
      message: (socket, data) => {
        received.push(String(data));
        if (received[0] === "break") socket.terminate();
        if (received[0] === "take") socket.close(4001, "taken_over: somebody attached");
        if (received[0] === "end") socket.close(1000);
        if (received.length === 1 && received[0] === "flood")
          for (let n = 0; n < 32; n++) socket.send(new Uint8Array(65_536));
      },
    },
  });
  return `${tls ? "https" : "http"}://localhost:${server.port}/below`;
}

const terminalOf = (options: { url: string; ca?: string }) =>
  new Roomd(options).rooms.open("a").sandbox("w").terminal("t");

async function shown(options: { url: string; ca?: string }): Promise<string> {
  const attached = await terminalOf(options).attach();
  for await (const bytes of attached.output) {
    attached.close();
    return Buffer.from(bytes).toString();
  }
  return "";
}

test("a terminal is attached below the service's path", async () => {
  expect(await shown({ url: serve() })).toBe("hi");
  expect(requests.at(-1)).toBe(`/below${WS_PATH}`);
});

test("a terminal of a service with its own certificate is attached", async () => {
  const { key, cert, authority } = await issue(["localhost"]);
  expect(await shown({ url: serve({ tls: { key, cert } }), ca: authority })).toBe("hi");
});

test("an aborted attach rejects", async () => {
  const url = serve({ lets: false });
  const left = new AbortController();
  const attached = terminalOf({ url }).attach({ signal: left.signal });
  await vi.waitFor(() => expect(requests).toHaveLength(2));
  left.abort(new Error("gone"));
  await expect(attached).rejects.toThrow(/^gone$/);
  await expect(terminalOf({ url }).attach({ timeoutMs: 200 })).rejects.toMatchObject({ name: "TimeoutError" });
});

test.each([
  ["that has ended is reported as ended", "end", null],
  ["that is taken over has that reason", "take", expect.stringContaining("taken_over: somebody attached")],
  ["whose connection broke is not reported as ended", "break", expect.any(String)],
])("a terminal %s, and nothing more is written to it", async (_, input, wrong) => {
  const attached = await terminalOf({ url: serve() }).attach();
  const output = attached.output[Symbol.asyncIterator]();
  await output.next();
  attached.write(input);
  const end = output.next().then(
    ({ done }) => (done ? null : undefined),
    ({ message }) => message,
  );
  expect(await end).toEqual(wrong);
  expect(() => attached.write("x")).toThrow(expect.objectContaining({ name: "ConnectionError" }));
});

test("a terminal that is not read receives no more, until it is", async () => {
  const attached = await terminalOf({ url: serve() }).attach();
  attached.write("flood");
  await vi.waitFor(() => expect(received).toEqual(["flood", '{"type":"flow","paused":true}']));
  let bytes = 0;
  for await (const part of attached.output) {
    bytes += part.byteLength;
    if (bytes > 32 * 65_536) break;
  }
  await vi.waitFor(() => expect(received.at(-1)).toBe('{"type":"flow","paused":false}'));
  attached.close();
});
