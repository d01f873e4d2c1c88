/** A directory of many rows, of which each change of another host has thousands. Join and purge: `test/unit/cluster/pages.test.ts`. */
import { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections } from "../../../daemon/cluster/connections.ts";
import { LONG, until } from "../../harness/guests.ts";
import type { Attack } from "../../harness/hostile/attack.ts";
import { fillDirectory } from "../../harness/hosts/large-directory.ts";

const KEYS = LONG ? 2_000_000 : 40_000;
const FILLED_BY = 1_000;
/** Rows of a change. */
const STEP = 20_000;
const MAX_MS = 600_000;

const connect = (url: string) => new Connections({ addresses: readAddresses(url) });

export default {
  title: "a directory of 2 million rows, and changes of 20,000 of them",
  hosts: 2,
  prepare: async (daemon) => {
    const url = daemon.env.ROOMD_CLUSTER_URL ?? "";
    const directory = connect(url);
    await directory.transaction(async (run) => {
      const {
        rows: [row],
      } = await run("SELECT seq FROM roomd.cluster FOR UPDATE");
      await run(fillDirectory(KEYS, FILLED_BY, Number(row?.seq)));
      await run("NOTIFY roomd");
    }, MAX_MS);
    directory.close();
    using database = new Database(join(daemon.dataDir, "roomd.db"), { readonly: true });
    // They were changed last.
    const orgs = database.query<{ n: number }, []>("SELECT count(*) AS n FROM orgs WHERE name LIKE 'org %'");
    await until("the host has all of them", () => Number(orgs.get()?.n) > 0, MAX_MS);
    return url;
  },
  attack: async ({ prepared }, count) => {
    const directory = connect(String(prepared));
    for (let from = 1; ; from = (from + STEP) % KEYS) {
      await directory.transaction(async (run) => {
        const {
          rows: [row],
        } = await run("UPDATE roomd.cluster SET seq = seq + 1 RETURNING seq");
        await run(
          `UPDATE roomd.rows SET seq = $1, "row" = "row" || jsonb_build_object('name', $2::text) WHERE tbl = 'api_keys' AND key IN
             (SELECT json_build_array('key_' || i)::text FROM generate_series($3::int, $4::int) i)`,
          [Number(row?.seq), randomUUID(), from, from + STEP - 1],
        );
        await run("INSERT INTO roomd.changes (seq, change_id, host_id) VALUES ($1, $2, 'other')", [
          Number(row?.seq),
          randomUUID(),
        ]);
        await run("NOTIFY roomd");
      }, MAX_MS);
      count("changed");
    }
  },
  expected: ["changed"],
} satisfies Attack;
