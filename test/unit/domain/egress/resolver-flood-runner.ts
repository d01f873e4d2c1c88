/** Reports the look-ups of one organization while the look-ups of another are never answered. */
import { writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { HostResolver } from "../../../../daemon/domain/egress/resolver.ts";
import { serveNames } from "./name-server.ts";

const FLOOD = 100;
const queries = await serveNames();
const resolver = new HostResolver("", "guest");

async function timed(work: Promise<unknown>) {
  const startedAt = performance.now();
  const failed = await work.then(
    () => false,
    () => true,
  );
  return { failed, ms: performance.now() - startedAt };
}

const other = { org_id: "other", sandbox_id: "theirs" };
const quiet = await timed(resolver.resolve("quiet.example", other));
const flood = Array.from({ length: FLOOD }, (_, index) =>
  timed(resolver.resolve(`silent${index}.example`, { org_id: "busy", sandbox_id: `s${index % 4}` })),
);
const file = timed(readFile("/proc/self/status"));
const concurrent = await Promise.all(
  Array.from({ length: 8 }, (_, index) => timed(resolver.resolve(`beside${index}.example`, other))),
);
const read = await file;
const silent = new Set(queries.filter((name) => name.startsWith("silent"))).size;
const failed = (await Promise.all(flood)).filter((each) => each.failed).length;
const again = await timed(resolver.resolve("silent0.example", { org_id: "busy", sandbox_id: "s0" }));
writeFileSync(1, JSON.stringify({ quiet, beside: concurrent, read, silent, failed, again }));
process.exit(0);
