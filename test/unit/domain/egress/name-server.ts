/** A DNS server at 127.0.0.1, port 53, of a separate network namespace: the first label of a name determines its answer. */
import { createSocket } from "node:dgram";

const A = 1;
const MX = 15;
const TXT = 16;
const SRV = 33;
/** a.example, as a name in a record. */
const TARGET = [1, 97, 7, ...Buffer.from("example"), 0];
const RECORDS: Record<number, number[]> = {
  [MX]: [0, 10, ...TARGET],
  [TXT]: [255, ...Buffer.alloc(255, "x"), 6, ...Buffer.from("second")],
  [SRV]: [0, 1, 0, 2, 0x69, 0x89, ...TARGET],
};
const CODES: Record<string, number> = { fails: 2, none: 3, refused: 5 };

/** Returns the names whose IPv4 addresses were requested, once per request. */
export async function serveNames(): Promise<string[]> {
  const queries: string[] = [];
  const server = createSocket("udp4", (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1);
    if (type === A) queries.push(labels.join("."));
    const [first = ""] = labels;
    if (first.startsWith("silent")) return;
    const head = Buffer.from(query.subarray(0, 12));
    head.writeUInt16BE(0x8180 | (CODES[first] ?? 0), 2);
    const data = type === A ? [192, 52, 193, 9] : RECORDS[type];
    const hasAnswer = data !== undefined && !(first in CODES) && first !== "empty";
    head.writeUInt16BE(hasAnswer ? 1 : 0, 6);
    head.writeUInt32BE(0, 8);
    // A pointer to the name, its type and class, a minute, and one record.
    const answer = Buffer.from([
      0xc0,
      12,
      0,
      type,
      0,
      1,
      0,
      0,
      0,
      60,
      (data?.length ?? 0) >> 8,
      (data?.length ?? 0) & 255,
      ...(data ?? []),
    ]);
    const reply = [head, query.subarray(12, at + 5), ...(hasAnswer ? [answer] : [])];
    server.send(Buffer.concat(reply), from.port, from.address);
  });
  await new Promise<void>((done) => server.bind(53, "127.0.0.1", done));
  return queries;
}
