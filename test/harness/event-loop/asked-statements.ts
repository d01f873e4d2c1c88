/** A daemon that logs the SQL statements of each request, and a reader of that log. */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { TestDaemon } from "../daemon.ts";
import { type RunStatement, STATEMENTS_VARIABLE } from "./statements.ts";

/** Runs from its sources. */
export async function startTelling(env: Record<string, string>): Promise<TestDaemon> {
  return await TestDaemon.start({
    program: [
      process.execPath,
      "--preload",
      resolve("test/harness/event-loop/statements.ts"),
      resolve("daemon/main.ts"),
    ],
    env,
    prepare: (made) => {
      made.env[STATEMENTS_VARIABLE] = join(made.home, "statements");
    },
  });
}

/** By the request's X-Request-Id, as `ROWS × SQL`, in order. */
export function statementsOf(daemon: TestDaemon): Map<string, string[]> {
  const run = new Map<string, string[]>();
  for (const line of readFileSync(daemon.env[STATEMENTS_VARIABLE] ?? "", "utf8")
    .trimEnd()
    .split("\n")) {
    const { request_id, sql, rows } = JSON.parse(line) as RunStatement;
    // Each turn of the event loop checks once whether another process has written, independent of the request.
    if (sql !== "PRAGMA data_version") run.set(request_id, [...(run.get(request_id) ?? []), `${rows} × ${sql}`]);
  }
  return run;
}
