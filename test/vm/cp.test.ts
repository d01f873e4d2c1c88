/** `roomd cp` with a real guest: files and directories both ways, between sandbox and drive, pipes, and refused arguments. */
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { withGuests } from "../harness/guests.ts";

withGuests("roomd cp", {}, (guests) => {
  let directory: string;
  beforeAll(async () => {
    await guests.daemon.room("cp");
    await guests.daemon.sandbox("cp", "w", guests.cid());
    directory = mkdtempSync(join(tmpdir(), "roomd-cp-"));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  const local = (name: string) => join(directory, name);
  const cli = (words: string[], input?: string) => guests.daemon.cli(words, input);
  const done = async (...words: string[]) => {
    const ran = await cli(["cp", ...words]);
    expect([ran.status, ran.stderr]).toEqual([0, ""]);
    return ran.stdout;
  };
  const w = (line: string) => guests.daemon.sh("cp", "w", line);

  test("a file is copied in with owner and mode, and back unchanged", async () => {
    const bytes = Buffer.from(Array.from({ length: 3_000_000 }, (_, index) => index % 251));
    writeFileSync(local("large"), bytes);
    chmodSync(local("large"), 0o750);
    expect(await done(local("large"), "cp/w:/root/in/", "--owner", "agent")).toMatch(
      /\b2\.9 MiB\b.* cp\/w:\/root\/in\/large\n$/,
    );
    expect(await w("stat -c '%U %a %s' /root/in/large")).toContain("agent 750 3000000");
    await done("cp/w:/root/in/large", local("back"));
    expect(Buffer.compare(readFileSync(local("back")), bytes)).toBe(0);
    expect(statSync(local("back")).mode & 0o700).toBe(0o700);
  });

  test("a directory is copied in and back, with modes, and links on the way back", async () => {
    mkdirSync(local("src/deep/empty"), { recursive: true });
    for (let each = 0; each < 20; each++) writeFileSync(local(`src/deep/${each} ü.txt`), `text ${each}`);
    writeFileSync(local("src/run"), "#!/bin/sh\necho ran\n");
    chmodSync(local("src/run"), 0o755);
    symlinkSync("run", local("src/link"));
    const sent = await cli(["cp", "-r", local("src"), "cp/w:/root", "--json"]);
    expect(JSON.parse(sent.stdout)).toMatchObject({
      ...{ to: "cp/w:/root/src", files: 21, directories: 3, left_out: [{ path: "link", type: "symlink" }] },
    });
    expect(await w("/root/src/run; cat '/root/src/deep/7 ü.txt'; ls -d /root/src/deep/empty")).toBe(
      "ran\ntext 7/root/src/deep/empty",
    );
    await w("ln -s run /root/src/link; mkfifo /root/src/pipe; chmod 2755 /root/src/run");
    const fetched = await cli(["cp", "-r", "cp/w:/root/src", local("copy")]);
    expect([fetched.status, fetched.stderr]).toEqual([0, expect.stringMatching(/\b1 .*\bpipe\n$/)]);
    expect(readFileSync(local("copy/deep/19 ü.txt"), "utf8")).toBe("text 19");
    expect([readlinkSync(local("copy/link")), statSync(local("copy/run")).mode & 0o7700]).toEqual(["run", 0o700]);
  });

  test("a file and a directory are copied between drive and sandbox", async () => {
    await w("mkdir -p /root/out/sub; echo 1 >/root/out/sub/one; echo 2 >/root/two");
    await done("-r", "cp/w:/root/out", "cp:/kept");
    expect(await w("cat /mnt/drive/kept/sub/one")).toBe("1");
    await done("-r", "cp:/kept/.", "cp/w:/root/again");
    await done("cp/w:/root/two", "cp:/kept/");
    expect(await w("cat /root/again/sub/one /mnt/drive/kept/two")).toBe("1\n2");
  });

  test("standard input and output can be source and target", async () => {
    expect((await cli(["cp", "-", "cp/w:/root/piped", "--mode", "0600"], "piped in\n")).status).toBe(0);
    expect(await w("stat -c %a /root/piped")).toBe("600");
    expect(await cli(["cp", "cp/w:/root/piped", "-"])).toMatchObject({ status: 0, stdout: "piped in\n" });
  });

  test("a missing source, a directory without -r, and an existing target are refused", async () => {
    await w("mkdir -p /root/dir; : >/root/there");
    const refused = async (...words: string[]) => {
      const { status, stderr } = await cli(["cp", ...words]);
      return [status, stderr];
    };
    expect(await refused("cp/w:/root/none", directory)).toEqual([1, expect.stringContaining("/root/none")]);
    expect(await refused(local("none"), "cp/w:/root")).toEqual([1, expect.stringContaining(local("none"))]);
    expect(await refused("cp/w:/root/dir", directory)).toEqual([2, expect.stringContaining("With -r")]);
    writeFileSync(local("there"), "mine");
    expect(await refused(local("there"), "cp/w:/root", "--no-overwrite")).toEqual([
      1,
      expect.stringContaining("exists"),
    ]);
    expect(await refused(local("there"), "cp/nobody:/x")).toEqual([1, expect.stringContaining("nobody")]);
  });

  test("roomd ls, rm and file access the same files", async () => {
    await w("mkdir -p /root/seen/in; : >/root/seen/in/f");
    expect((await cli(["ls", "cp/w:/root/seen", "-r"])).stdout).toBe("/root/seen/in/\n/root/seen/in/f\n");
    expect((await cli(["file", "mv", "cp/w:/root/seen/in/f", "cp/w:/root/seen/g"])).status).toBe(0);
    expect(JSON.parse((await cli(["file", "stat", "cp/w:/root/seen/g", "--json"])).stdout)).toMatchObject({
      type: "file",
    });
    expect((await cli(["rm", "cp/w:/root/seen"])).status).toBe(1);
    expect((await cli(["rm", "-r", "cp/w:/root/seen"])).status).toBe(0);
    expect(await w("ls -d /root/seen 2>/dev/null || echo gone")).toBe("gone");
  });
});
