/** Setup during a template build of another process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { untilBuildEnds } from "../../../daemon/cli/host/setup/running-build.ts";

let directory: string;
let paths: { build_lock: string; build_progress: string };
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-build-"));
  paths = { build_lock: join(directory, "lock"), build_progress: join(directory, "progress") };
});
afterEach(() => rmSync(directory, { recursive: true }));

test("prints past and new output of the build and waits for its end", async () => {
  const builder = spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
  const ended = once(builder, "exit");
  writeFileSync(paths.build_lock, String(builder.pid));
  writeFileSync(paths.build_progress, "[1/5] one\n");
  const lines: string[] = [];
  let isOver = false;
  const waiting = untilBuildEnds(paths, (line) => lines.push(line), 1).then(() => {
    isOver = true;
  });
  await vi.waitFor(() => expect(lines).toEqual(["[1/5] one"]));
  appendFileSync(paths.build_progress, "[2/5] two\n[3/5] unfin");
  await vi.waitFor(() => expect(lines).toEqual(["[1/5] one", "[2/5] two"]));
  expect(isOver).toBe(false);
  appendFileSync(paths.build_progress, "ished\n");
  builder.stdin.end();
  await ended;
  await waiting;
  expect(lines).toEqual(["[1/5] one", "[2/5] two", "[3/5] unfinished"]);
});

test("does not wait for an exited process or without one", async () => {
  for (const text of ["", "none", "0", "-1", "2147483647"]) {
    writeFileSync(paths.build_lock, text);
    await untilBuildEnds(paths, () => {}, 1);
  }
  rmSync(paths.build_lock);
  await untilBuildEnds(paths, () => {}, 1);
});
