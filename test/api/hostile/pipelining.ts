/** Pipelined requests without a valid key, of an unknown route, and of a preflight, by a connection each. */
import { connect } from "node:net";
import type { Attack, Count } from "../../harness/hostile/attack.ts";

const BATCH = 20_000;

const REQUESTS = [
  "GET /v1/me HTTP/1.1\r\nHost: HOST\r\n\r\n",
  `GET /v1/me HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer key-${"x".repeat(43)}\r\n\r\n`,
  "GET /nowhere HTTP/1.1\r\nHost: HOST\r\n\r\n",
  "OPTIONS /v1/rooms HTTP/1.1\r\nHost: HOST\r\n\r\n",
];

/** The service closes a connection that has pipelined requests behind the current one. */
function flood(url: string, request: string, count: Count): void {
  const { hostname, port } = new URL(url);
  const batch = request.replace("HOST", hostname).repeat(BATCH);
  const socket = connect({ host: hostname, port: Number(port) });
  const send = () => {
    while (!socket.destroyed && socket.write(batch));
  };
  socket.on("connect", send).on("drain", send);
  socket.on("data", (chunk) => {
    for (const [, status = ""] of chunk.toString("latin1").matchAll(/HTTP\/1.1 (\d+)/g)) count(status);
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    count("closed");
    flood(url, request, count);
  });
}

export default {
  title: "pipelined requests without a key, with an unknown key, of an unknown route, and OPTIONS",
  attack: async ({ url }, count) => {
    for (const request of REQUESTS) flood(url, request, count);
    await new Promise(() => {});
  },
} satisfies Attack;
