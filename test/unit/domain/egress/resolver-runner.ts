/** Reports the resolver's results for the answers of a DNS server in a separate network namespace. */
import { writeFileSync } from "node:fs";
import { HostResolver, NotResolved } from "../../../../daemon/domain/egress/resolver.ts";
import type { DnsRecord } from "../../../../shared/agent-protocol/messages.ts";
import { serveNames } from "./name-server.ts";

const [caller = "", file = "", ...names] = process.argv.slice(2);
const queries = await serveNames();
const resolver = new HostResolver(file, caller as "guest" | "host");
const results: object[] = [];
for (const name of names) {
  queries.length = 0;
  const [type, of] = name.split(":");
  if (of) {
    const kind = type as DnsRecord["type"];
    const found = await resolver.records(of, kind, { org_id: "org", sandbox_id: "sandbox" }).catch(() => "failed");
    results.push({ name, found });
    continue;
  }
  try {
    const found = await resolver.resolve(name, { org_id: "org", sandbox_id: "sandbox" });
    results.push({ name, addresses: found.map(({ text }) => text), asked: [...queries] });
  } catch (error) {
    results.push({ name, failed: error instanceof NotResolved, asked: [...queries] });
  }
}
writeFileSync(1, JSON.stringify(results));
process.exit(0);
