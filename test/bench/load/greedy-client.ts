/** A client that sends the next request on each response, over 64 connections, until it is terminated. Arguments: a URL and an API key. */
import { writeSync } from "node:fs";
import { connect } from "node:net";

const [, , url = "", key = ""] = process.argv;
const { hostname, port, pathname, host } = new URL(url);
const request = `GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`;
let made = 0;
const lanes = Array.from({ length: 64 }, () => connect({ host: hostname, port: Number(port) }));
for (const lane of lanes) {
  lane.on("data", () => {
    made++;
    lane.write(request);
  });
  lane.write(request);
}
process.on("SIGTERM", () => {
  // Synchronous: the process would exit before an asynchronous write to the pipe.
  writeSync(1, `${made}\n`);
  process.exit(0);
});
console.log("asking");
