/** Queries the guest's resolver by UDP and TCP in a separate network namespace, in front of a simulated host. */
import { Resolver as Client } from "node:dns/promises";
import { writeFileSync } from "node:fs";
import { Names } from "../../../guest-agent/egress/names.ts";
import { Resolver } from "../../../guest-agent/egress/resolver.ts";
import type { HostConnection } from "../../../guest-agent/host-connection.ts";
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import type { EgressRecords, GuestRequest } from "../../../shared/agent-protocol/messages.ts";

const ANSWERS: Record<string, EgressRecords> = {
  "SRV _x._tcp.a.example": {
    answer: "found",
    records: [{ type: "SRV", priority: 1, weight: 2, port: 27_017, target: "b.example" }],
  },
  "MX a.example": { answer: "found", records: [{ type: "MX", preference: 10, target: "b.example" }] },
  "TXT a.example": {
    answer: "found",
    records: Array.from({ length: 9 }, () => ({ type: "TXT", texts: ["x".repeat(200)] })),
  },
  "TXT none.example": { answer: "none", records: [] },
  "TXT fails.example": { answer: "failed", records: [] },
};
const requests: string[] = [];

function answerTo(request: GuestRequest): Promise<unknown> {
  if (request.method === "egress_resolve") return Promise.resolve({ answer: "address" });
  if (request.method !== "egress_records") throw new Error("it asks for names only");
  const question = `${request.type} ${request.name}`;
  requests.push(question);
  const older = new StreamError({ code: "unknown_method", message: "there is no such method" });
  return request.name === "older.example" ? Promise.reject(older) : Promise.resolve(ANSWERS[question]);
}
const line = { ask: (request: GuestRequest) => ({ finished: answerTo(request), fail: () => {} }) };
await new Resolver(line as unknown as HostConnection, new Names()).listen();

const client = new Client({ timeout: 2000, tries: 1 });
client.setServers(["127.0.0.53"]);
const outcome = (each: Promise<unknown>) => each.catch((error: { code?: string }) => error.code);
const found = {
  srv: await outcome(client.resolveSrv("_x._tcp.a.example")),
  mx: await outcome(client.resolveMx("a.example")),
  txt: ((await outcome(client.resolveTxt("a.example"))) as string[][]).flat().map(({ length }) => length),
  none: await outcome(client.resolveTxt("none.example")),
  fails: await outcome(client.resolveTxt("fails.example")),
  older: await outcome(client.resolveTxt("older.example")),
  a: await outcome(client.resolve4("a.example")),
  asked: requests.length,
};
writeFileSync(1, JSON.stringify(found));
process.exit(0);
