/**
 * Concurrent readers of a room's events, which read everything until the process is terminated. Arguments: their number, a URL and an API
 * key.
 */
import { writeSync } from "node:fs";
import { connect } from "node:net";

const [, , watchers = "", url = "", key = ""] = process.argv;
const { hostname, port, pathname, host } = new URL(url);
const lines = [
  `GET ${pathname} HTTP/1.1`,
  `Host: ${host}`,
  `Authorization: Bearer ${key}`,
  "Accept: text/event-stream",
];
const NEWLINE = 10;
let received = 0;
let opened = 0;
for (let n = 0; n < Number(watchers); n++) {
  const socket = connect({ host: hostname, port: Number(port) });
  let wasNewline = false;
  socket.once("data", () => {
    opened++;
    if (opened === Number(watchers)) console.log("asking");
  });
  // An event ends with an empty line: parsing more of it would take processor time from the measured daemon.
  socket.on("data", (bytes) => {
    for (const byte of bytes) {
      if (byte === NEWLINE && wasNewline) received++;
      wasNewline = byte === NEWLINE;
    }
  });
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
}
process.on("SIGTERM", () => {
  // Synchronous: the process would exit before an asynchronous write to the pipe.
  writeSync(1, `${received}\n`);
  process.exit(0);
});
