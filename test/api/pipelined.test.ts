/** Pipelined requests without a key: one connection of them holds up no other client. */
import { connect, type Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../harness/daemon.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

const BATCH = 20_000;
/** Responses that a flood may get between two of another client's: without turns it got some 10,000. */
const MAX_BETWEEN = 1000;

/** Sends pipelined requests until stopped, over a new connection whenever the service closes one, and counts the responses. */
function flood(request: string) {
  const { hostname, port } = new URL(daemon.url);
  const batch = request.replace("HOST", hostname).repeat(BATCH);
  const seen = { responses: 0, connections: 0 };
  let socket: Socket;
  let isStopped = false;
  const start = () => {
    seen.connections++;
    socket = connect({ host: hostname, port: Number(port) });
    const send = () => {
      while (!socket.destroyed && socket.write(batch));
    };
    socket.on("connect", send).on("drain", send);
    socket.on("data", (chunk) => {
      seen.responses += chunk.toString("latin1").split("HTTP/1.1 ").length - 1;
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      if (!isStopped) start();
    });
  };
  start();
  return {
    seen,
    stop() {
      isStopped = true;
      socket.destroy();
    },
  };
}

test.each([
  ["without a key", "GET /v1/me HTTP/1.1\r\nHost: HOST\r\n\r\n"],
  ["with an unknown key", `GET /v1/me HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer key-${"x".repeat(43)}\r\n\r\n`],
  ["of an unknown route", "GET /nowhere HTTP/1.1\r\nHost: HOST\r\n\r\n"],
  ["OPTIONS", "OPTIONS /v1/rooms HTTP/1.1\r\nHost: HOST\r\n\r\n"],
])("pipelined requests %s do not delay other clients", async (_, request) => {
  const { seen, stop } = flood(request);
  try {
    const between: number[] = [];
    for (let call = 0; call < 40; call++) {
      const before = seen.responses;
      await daemon.ok("GET", "/v1/me");
      between.push(seen.responses - before);
    }
    // A connection with more requests while an answer is pending is closed, its answer with it.
    expect(seen.responses + seen.connections).toBeGreaterThan(1);
    expect(Math.max(...between)).toBeLessThan(MAX_BETWEEN);
  } finally {
    stop();
  }
});

/** The statuses of three pipelined requests, as far as they are answered. */
async function pipelined(): Promise<(string | undefined)[]> {
  const { hostname, port } = new URL(daemon.url);
  const socket = connect({ host: hostname, port: Number(port) });
  const request = (path: string, last = "") => `GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\n${last}\r\n`;
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  const closed = new Promise<void>((done) => socket.once("close", () => done()));
  socket.write(request("/one") + request("/v1/me") + request("/three", "Connection: close\r\n"));
  await closed;
  return [...text.matchAll(/HTTP\/1.1 (\d+)/g)].map(([, status]) => status);
}

test("a few pipelined requests are all answered in order on one connection", async () => {
  const expected = ["404", "401", "404"];
  // A request that has to wait for its turn on a busy host closes the connection after it: then a client repeats the others.
  for (let attempt = 1; attempt <= 20; attempt++) {
    const statuses = await pipelined();
    expect(statuses).toEqual(expected.slice(0, statuses.length));
    if (statuses.length === expected.length) return;
  }
  throw new Error("no connection answered all of them");
});
