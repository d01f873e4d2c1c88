/** Sends messages to a room at a fixed rate until it is terminated. Arguments: messages per second, a URL and an API key. */
import { writeSync } from "node:fs";
import { connect } from "node:net";

const LANES = 32;
const TICK_MS = 1;

const [, , perSecond = "", url = "", key = ""] = process.argv;
const { hostname, port, pathname, host } = new URL(url);
const body = JSON.stringify({ source: "ann", topic: "none", payload: { n: 1 } });
const lines = [
  `POST ${pathname} HTTP/1.1`,
  `Host: ${host}`,
  `Authorization: Bearer ${key}`,
  "Content-Type: application/json",
  `Content-Length: ${body.length}`,
];
const request = `${lines.join("\r\n")}\r\n\r\n${body}`;
let made = 0;
const free = Array.from({ length: LANES }, () => {
  const lane = connect({ host: hostname, port: Number(port) });
  lane.on("data", () => {
    made++;
    free.push(lane);
  });
  return lane;
});
const startedAt = performance.now();
let sentCount = 0;
setInterval(() => {
  const due = ((performance.now() - startedAt) / 1000) * Number(perSecond);
  for (; sentCount < due && free.length > 0; sentCount++) free.pop()?.write(request);
}, TICK_MS);
process.on("SIGTERM", () => {
  // Synchronous: the process would exit before an asynchronous write to the pipe.
  writeSync(1, `${made}\n`);
  process.exit(0);
});
console.log("asking");
