/** A client that asks as often as it is answered, by 64 connections, until it is ended. Arguments: a URL and an API key. */
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
  // At once: the process ends before a pipe is written to.
  writeSync(1, `${made}\n`);
  process.exit(0);
});
console.log("asking");
