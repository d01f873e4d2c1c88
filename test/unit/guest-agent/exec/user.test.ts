/** Whom a command runs as, by files as images have them. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findUser } from "../../../../guest-agent/exec/user.ts";

const directory = mkdtempSync(join(tmpdir(), "roomd-user-"));
const file = join(directory, "passwd");
afterAll(() => rmSync(directory, { recursive: true }));

test("users are found by name, then by number", () => {
  writeFileSync(
    file,
    "root:x:0:0::/root:/bin/sh\n1001:x:7:8::/seven:\nann:x:1001:1002:Ann:/home/ann:/bin/zsh\nbad line\n",
  );
  expect(findUser("ann", file)).toEqual({ name: "ann", uid: 1001, gid: 1002, home: "/home/ann", shell: "/bin/zsh" });
  expect(findUser("1001", file)).toMatchObject({ uid: 7, home: "/seven", shell: "/bin/sh" });
  expect(findUser("7", file)).toMatchObject({ name: "1001" });
  expect(findUser("bob", file)).toBeNull();
});

test("without the file there is root, and nobody else", () => {
  for (const missing of [join(directory, "none"), directory]) {
    expect(findUser("ann", missing)).toBeNull();
    for (const root of [null, "root", "0"]) expect(findUser(root, missing)?.uid).toBe(0);
  }
});
