/** The user that a command runs as, with files as in images. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { commandAs, findImageUser, findUser } from "../../../../guest-agent/exec/user.ts";

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

test("without the file there is only root", () => {
  for (const missing of [join(directory, "none"), directory]) {
    expect(findUser("ann", missing)).toBeNull();
    for (const root of [null, "root", "0"]) expect(findUser(root, missing)?.uid).toBe(0);
  }
});

test("an image's user is given by names or by numbers, which need be in no file", () => {
  const group = join(directory, "group");
  writeFileSync(group, "root:x:0:\nstaff:x:50:ann\n7:x:70:\n");
  const files = { passwd: file, group };
  expect(findImageUser("ann", files)).toEqual(findUser("ann", file));
  expect(findImageUser("ann:staff", files)).toMatchObject({ uid: 1001, gid: 50, lone: true });
  expect(findImageUser("ann:9", files)).toMatchObject({ uid: 1001, gid: 9 });
  expect(findImageUser("root:7", files)).toMatchObject({ uid: 0, gid: 70 });
  expect(findImageUser("4321", files)).toEqual({
    ...{ name: "4321", uid: 4321, gid: 0, home: "/", shell: "/bin/sh", lone: true },
  });
  for (const none of ["bob", "ann:nobodys", "4294967295", "-1", "1e3"])
    expect(findImageUser(none, files), none).toBeNull();
});

test("a lone user gets no supplementary groups, and a listed one its own", () => {
  const user = { name: "x", uid: 5, gid: 6, home: "/", shell: "/bin/sh" };
  expect(commandAs(user, ["id"])).toEqual(expect.arrayContaining(["--reuid=5", "--regid=6", "--init-groups", "id"]));
  expect(commandAs({ ...user, lone: true }, ["id"])).toContain("--clear-groups");
  expect(commandAs({ ...user, uid: 0, gid: 0 }, ["id"])).toEqual(["id"]);
  expect(commandAs({ ...user, uid: 0, gid: 7, lone: true }, ["id"])).toContain("--regid=7");
});
