/** The room's drive between real guests and the API: one view for all that share it, and no access for others. */
import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { shortOrLong, until, withGuests } from "../../harness/guests.ts";

const rounds = shortOrLong("rounds of writing in one place and reading in another", 50, 500);
const entries = shortOrLong("entries of a listed directory", 2_500, 20_000);

withGuests("the drive", {}, (guests) => {
  const drive = (call: string, room = "shared") => `/v1/rooms/${room}/drive/${call}`;
  const a = (line: string) => guests.daemon.sh("shared", "a", line);
  const b = (line: string) => guests.daemon.sh("shared", "b", line);

  beforeAll(async () => {
    const { daemon } = guests;
    await daemon.room("shared");
    await daemon.room("other");
    await Promise.all([
      daemon.sandbox("shared", "a", guests.cid()),
      daemon.sandbox("shared", "b", guests.cid()),
      daemon.sandbox("other", "c", guests.cid()),
    ]);
  });

  test("a write by one sandbox is read by the other immediately", async () => {
    for (let round = 0; round < rounds; round++) {
      // In turn: a new file, a longer one in its place, a shorter one, more at its end.
      const write = ["echo %s >n", "printf '%%99s' %s >n", "printf %s >n", "printf %s >>n"][round % 4] ?? "";
      await a(`cd /mnt/drive; ${write.replace("%s", String(round)).replace("%%", "%")}`);
      const [seen, size] = (await b("cd /mnt/drive; cat n; echo; stat -c %s n")).split("\n").filter(Boolean);
      expect([round, seen?.trim()]).toEqual([round, round % 4 === 3 ? `${round - 1}${round}` : String(round)]);
      expect(Number(size)).toBeGreaterThanOrEqual(seen?.trim().length ?? 1);
    }
  });

  test("a rename, link or deletion by one is visible to the other immediately", async () => {
    await a("cd /mnt/drive; mkdir d; echo 1 >d/one; ln d/one d/twin; ln -s one d/link");
    expect(await b("cd /mnt/drive; ls d; cat d/twin d/link")).toBe("link\none\ntwin\n1\n1");
    await b("cd /mnt/drive; mv d/one d/moved; echo 2 >>d/moved");
    expect(await a("cd /mnt/drive; ls d; cat d/twin")).toBe("link\nmoved\ntwin\n1\n2");
    await a("cd /mnt/drive; mv d e; rm e/moved");
    expect(await b("cd /mnt/drive; ls e; ls -d d || echo gone")).toBe("link\ntwin\ngone");
    await b("rm -r /mnt/drive/e");
    expect(await a("ls -d /mnt/drive/e || echo gone")).toBe("gone");
  });

  test("a sandbox of another room sees none of it", async () => {
    await a("echo secret >/mnt/drive/of-shared; sync");
    const { daemon } = guests;
    expect(await daemon.sh("other", "c", "ls -A /mnt/drive; cat /mnt/drive/of-shared 2>&1 || true")).toContain(
      "No such file",
    );
    await daemon.sh("other", "c", "echo other >/mnt/drive/of-other");
    expect(await b("ls /mnt/drive/of-other 2>&1 || true")).toContain("No such file");
    // Nor is anything of the host above the drive.
    expect(await daemon.sh("other", "c", "ls -A /mnt/drive/..")).not.toContain("rom_");
    expect((await daemon.problem("GET", `${drive("read", "other")}?path=of-shared`)).code).toBe("path_not_found");
  });

  test("a room backup has the drive at one instant while a sandbox writes, and the sandbox continues", async () => {
    const { daemon } = guests;
    const step = "echo $n >t; mv t one; echo $n >t; mv t two; n=$((n+1))";
    const argv = ["sh", "-c", `cd /mnt/drive; mkdir pair; cd pair; n=1; while [ ! -e ../enough ]; do ${step}; done`];
    await daemon.ok("POST", "/v1/rooms/shared/sandboxes/a/executions", {
      exec_id: "writer",
      argv,
      timeout_ms: 120_000,
    });
    const read = async (name: string, room: string) =>
      Number((await daemon.ok("GET", `${drive("read", room)}?path=/pair/${name}`)).content);
    await until(
      "the command writes",
      async () => (await daemon.api("GET", `${drive("stat")}?path=/pair/two`)).status === 200,
    );
    const headers = { authorization: `Bearer ${daemon.apiKey}` };
    for (const copy of ["copy-1", "copy-2", "copy-3"]) {
      const file = await (await fetch(`${daemon.url}/v1/rooms/shared/backup`, { headers })).bytes();
      const made = await fetch(`${daemon.url}/v1/rooms/${copy}/backup`, { method: "PUT", headers, body: file });
      expect(await made.json()).toMatchObject({ left_out: { sandboxes: 2 }, room: { sandbox_count: 0 } });
      const [one, two] = [await read("one", copy), await read("two", copy)];
      expect([copy, one - two === 0 || one - two === 1, one > 0]).toEqual([copy, true, true]);
      await until("the writer continues", async () => (await read("two", "shared")) > one);
    }
    await b("touch /mnt/drive/enough");
    const ended = async () => (await daemon.ok("GET", "/v1/rooms/shared/sandboxes/a/executions/writer")).state;
    await until("the execution has ended", async () => (await ended()) === "exited");
  });

  test("API and guest see each other's writes immediately", async () => {
    const { daemon } = guests;
    for (let round = 0; round < 20; round++) {
      const text = `${round} ${"x".repeat(round * 100)}`;
      await daemon.ok("POST", drive("write"), { path: "from-host", content: text });
      expect((await daemon.exec("shared", "a", { argv: ["cat", "/mnt/drive/from-host"] })).stdout).toBe(text);
      await a(`printf '%s' '${text} back' >/mnt/drive/from-guest`);
      expect((await daemon.ok("GET", `${drive("read")}?path=from-guest`)).content).toBe(`${text} back`);
    }
    await daemon.ok("POST", drive("mkdir"), { path: "/made/by/host" });
    await daemon.ok("POST", drive("move"), { from: "from-host", to: "made/by/host/file" });
    expect(await b("cat /mnt/drive/made/by/host/file; ls /mnt/drive/from-host 2>/dev/null || echo moved")).toMatch(
      /moved$/,
    );
    await daemon.ok("DELETE", `${drive("delete")}?path=/made&recursive=true`);
    expect(await b("ls -d /mnt/drive/made || echo gone")).toBe("gone");
  });

  test("a reader in a guest never sees a partial write of the API", async () => {
    const { daemon } = guests;
    const size = 256 * 1024;
    const write = (letter: string) =>
      daemon.ok("POST", drive("write"), { path: "whole", content: letter.repeat(size) });
    await write("a");
    const script = [
      "import sys",
      "seen = []",
      "while len(seen) < 50 or len(set(seen)) < 2:",
      "  data = open('/mnt/drive/whole').read()",
      `  if len(data) != ${size} or len(set(data)) != 1: sys.exit('half: %d %s' % (len(data), set(data)))`,
      "  seen.append(data[0])",
      "print(sorted(set(seen)))",
    ].join("\n");
    let reading = true;
    const reader = daemon.exec("shared", "b", { argv: ["python3", "-c", script], timeout_ms: 60_000 }).finally(() => {
      reading = false;
    });
    while (reading) for (const letter of "ba") await write(letter);
    expect(await reader).toMatchObject({ exit_code: 0, stdout: "['a', 'b']\n", stderr: "" });
  });

  test(`a directory of ${entries} entries made by a guest is listed completely`, async () => {
    const { daemon } = guests;
    const script = `import os\nos.mkdir('/mnt/drive/many')\nfor n in range(${entries}): os.mknod('/mnt/drive/many/%05d' % n)`;
    const made = await daemon.exec("shared", "a", { argv: ["python3", "-c", script], timeout_ms: 300_000 });
    expect(made).toMatchObject({ exit_code: 0 });
    const names: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await daemon.ok("GET", `${drive("list")}?path=/many&limit=1000${cursor}`);
      names.push(...page.items.map((item: Json) => item.name));
      if (page.next_cursor === null) break;
      cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
    }
    expect(names).toEqual(Array.from({ length: entries }, (_, index) => String(index).padStart(5, "0")));
    await daemon.ok("DELETE", `${drive("delete")}?path=/many&recursive=true`);
    expect(await a("ls -d /mnt/drive/many || echo gone")).toBe("gone");
  });

  test("100 MB written by a guest are streamed out unchanged", async () => {
    const { daemon } = guests;
    const line = "head -c 100000000 /dev/urandom >/mnt/drive/large; sha256sum </mnt/drive/large";
    const inside = await daemon.exec("shared", "a", { command: line, timeout_ms: 120_000 });
    const response = await fetch(daemon.url + drive("files/large"), {
      headers: { authorization: `Bearer ${daemon.apiKey}` },
    });
    expect(response.status).toBe(200);
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      hash.update(chunk);
      bytes += chunk.byteLength;
    }
    expect(bytes).toBe(100_000_000);
    expect(`${hash.digest("hex")}  -\n`).toBe(inside.stdout);
    // A measure may be two seconds old.
    const used = async () => (await daemon.ok("GET", "/v1/rooms/shared")).drive.used_bytes;
    await until("the room counts the bytes", async () => (await used()) >= 100_000_000);
  });

  test("unusual names are listed, and do no harm", async () => {
    const { daemon } = guests;
    const script = [
      "import os",
      "os.mkdir('/mnt/drive/odd')",
      "for name in [b'\\xff\\xfe', b'new\\nline', b' ', b'-rf', b'\"<b>', b'a' * 255, '\\u00fc\\U0001f600'.encode(), b'%2e%2e', b'\\x1b[31m']:",
      "  open(b'/mnt/drive/odd/' + name, 'w').write('x')",
    ].join("\n");
    expect(await daemon.exec("shared", "a", { argv: ["python3", "-c", script] })).toMatchObject({ exit_code: 0 });
    const { items } = await daemon.ok("GET", `${drive("list")}?path=/odd`);
    expect(items.map((item: Json) => item.name).toSorted()).toEqual(
      ["\ufffd\ufffd", "new\nline", " ", "-rf", '"<b>', "a".repeat(255), "ü😀", "%2e%2e", "\x1b[31m"].toSorted(),
    );
    for (const name of ["new\nline", " ", "-rf", '"<b>', "ü😀", "%2e%2e"]) {
      const read = await daemon.ok("GET", `${drive("read")}?path=${encodeURIComponent(`/odd/${name}`)}`);
      expect(read).toMatchObject({ path: `/odd/${name}`, content: "x" });
      const got = await daemon.api("GET", drive(`files/odd/${encodeURIComponent(name)}`));
      expect([name, got.status, got.body]).toEqual([name, 200, "x"]);
    }
    await daemon.ok("DELETE", `${drive("delete")}?path=/odd&recursive=true`);
    expect(await a("ls -d /mnt/drive/odd || echo gone")).toBe("gone");
  });
});
