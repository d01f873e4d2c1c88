/** The start of a daemon on a database whose log is damaged: the discarded commits are logged, and the service starts. */
import { closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openDatabase } from "../../../daemon/compose/base.ts";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import { asJson, makeLog } from "../../../daemon/core/log.ts";

const FRAME_BYTES = 24 + 4096;

const onFull = () => false;

test("commits behind a damaged frame are logged as discarded, and earlier commits are present", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-damaged-"));
  const pathsOf = (name: string) => {
    const data_dir = join(home, name);
    mkdirSync(data_dir);
    return makePaths({ data_dir, runtime_dir: join(home, "run") });
  };
  try {
    const [before, after] = [pathsOf("before"), pathsOf("after")];
    const first = openDatabase(before, { onFull });
    await first.commit((queries) => queries.run("CREATE TABLE t (n INTEGER)"));
    for (const n of [1, 2, 3]) await first.commit((queries) => queries.run(`INSERT INTO t VALUES (${n})`));
    for (const end of ["", "-wal"]) copyFileSync(`${before.database}${end}`, `${after.database}${end}`);
    await first.close();
    // The last three frames are a commit each.
    const log = openSync(`${after.database}-wal`, "r+");
    writeSync(log, Buffer.alloc(512), 0, 512, statSync(`${after.database}-wal`).size - 2 * FRAME_BYTES + 24);
    closeSync(log);

    const lines: string[] = [];
    const second = openDatabase(after, { onFull, log: makeLog("warn", (line) => lines.push(line), asJson) });
    expect(second.queries.all("SELECT n FROM t")).toEqual([{ n: 1 }]);
    await second.close();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: "error", frames: 2, commits: 2 }]);
  } finally {
    rmSync(home, { recursive: true });
  }
});
