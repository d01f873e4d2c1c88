/** Arguments of the command line that are not UTF-8. */
import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { BINARY } from "../../../harness/daemon.ts";

/** `printf` makes the last argument's bytes. */
const stat = (printed: string) =>
  spawnSync("sh", ["-c", `exec "$0" drive stat "r:$(printf '${printed}')" --json`, BINARY], {
    encoding: "utf8",
    env: { PATH: process.env.PATH, ROOMD_URL: "http://127.0.0.1:1", ROOMD_API_KEY: "key-of-nobody" },
  });

test("an argument that is not UTF-8 is rejected instead of being decoded to another text", () => {
  const { status, stderr } = stat("bad\\377");
  expect([status, JSON.parse(stderr).detail]).toEqual([2, expect.stringContaining("not UTF-8")]);
});

test("U+FFFD itself and any other valid character are passed on", () => {
  for (const good of ["\\357\\277\\275", "\\303\\251"]) {
    expect(JSON.parse(stat(good).stderr).detail).toContain("http://127.0.0.1:1");
  }
});
