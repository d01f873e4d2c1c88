/** So many readers of a room's events, who read all that comes until they are ended. Arguments: how many, a URL and an API key. */
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
let told = 0;
let opened = 0;
for (let n = 0; n < Number(watchers); n++) {
  const socket = connect({ host: hostname, port: Number(port) });
  let wasNewline = false;
  socket.once("data", () => {
    opened++;
    if (opened === Number(watchers)) console.log("asking");
  });
  // An event ends with an empty line: to read more of it would cost what is measured its processor.
  socket.on("data", (bytes) => {
    for (const byte of bytes) {
      if (byte === NEWLINE && wasNewline) told++;
      wasNewline = byte === NEWLINE;
    }
  });
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
}
process.on("SIGTERM", () => {
  // At once: the process ends before a pipe is written to.
  writeSync(1, `${told}\n`);
  process.exit(0);
});
