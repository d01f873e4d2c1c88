/** Reports the resolver's results for the answers of a DNS server in a separate network namespace. */
import { writeFileSync } from "node:fs";
import { HostResolver, NotResolved } from "../../../../daemon/domain/egress/resolver.ts";
import type { DnsRecord } from "../../../../shared/agent-protocol/messages.ts";
import { serveNames } from "./name-server.ts";

const [who = "", file = "", ...names] = process.argv.slice(2);
const asked = await serveNames();
const resolver = new HostResolver(file, who as "guest" | "host");
const told: object[] = [];
for (const name of names) {
  asked.length = 0;
  const [type, of] = name.split(":");
  if (of) {
    const kind = type as DnsRecord["type"];
    const found = await resolver.records(of, kind, { org_id: "org", sandbox_id: "sandbox" }).catch(() => "failed");
    told.push({ name, found });
    continue;
  }
  try {
    const found = await resolver.resolve(name, { org_id: "org", sandbox_id: "sandbox" });
    told.push({ name, addresses: found.map(({ text }) => text), asked: [...asked] });
  } catch (error) {
    told.push({ name, failed: error instanceof NotResolved, asked: [...asked] });
  }
}
writeFileSync(1, JSON.stringify(told));
process.exit(0);
