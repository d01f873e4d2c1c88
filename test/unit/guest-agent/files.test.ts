/** The agent's files and the host's half, on this host: whole files, refusals, lists in order, and changes as they happen. */
import { execFileSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  appendFileSync,
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import {
  listInGuest,
  makeDirectoryInGuest,
  moveInGuest,
  openInGuest,
  removeInGuest,
  statInGuest,
  watchInGuest,
  writeInGuest,
} from "../../../daemon/host/guest-link/files.ts";
import { fileMethods } from "../../../guest-agent/files/methods.ts";
import { FILE_READ_WINDOW_BYTES, FILE_WINDOW_BYTES, type FileChange } from "../../../shared/agent-protocol/files.ts";
import { StreamError, WINDOW_BYTES } from "../../../shared/agent-protocol/link.ts";
import { Channel } from "../../../shared/agent-protocol/messages.ts";
import { until } from "../../harness/guests.ts";
import { linkedGuest } from "./linked-guest.ts";

const top = mkdtempSync(join(tmpdir(), "roomd-files-"));
let dead = false;
const drive = { holds: (path: string) => `${path}/`.startsWith(`${top}/drive/`), answers: async () => !dead };
const { link } = linkedGuest(fileMethods(drive));
let made = 0;
let dir = top;

beforeEach(() => {
  dir = join(top, `t${++made}`);
  mkdirSync(dir);
});
afterAll(() => rmSync(top, { recursive: true }));

const at = (name: string) => join(dir, name);
const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const fill = (...parts: (string | Uint8Array)[]) => {
  return async (write: (bytes: Uint8Array) => Promise<void>) => {
    for (const part of parts) await write(Buffer.from(part));
  };
};
const write = (name: string, data: string | Uint8Array, more: Partial<Parameters<typeof writeInGuest>[1]> = {}) =>
  writeInGuest(link, { path: at(name), mode: null, owner: null, overwrite: true, ...more }, fill(data));
const read = async (path: string, offset = 0, length?: number) => {
  const file = await openInGuest(link, path);
  return Buffer.from(await new Response(file.take(offset, length ?? file.entry.size_bytes - offset)).arrayBuffer());
};
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "none",
    (error: unknown) => (error instanceof StreamError ? `${error.code} ${error.message}` : String(error)),
  );

describe("whole files", () => {
  test("a large file is written and read unchanged, and so are parts of it", async () => {
    const bytes = randomBytes(3_000_001);
    const { entry, created } = await write("a/b/large", bytes);
    expect(created).toBe(true);
    expect(entry).toMatchObject({ type: "file", size_bytes: bytes.byteLength, mode: 0o644 });
    expect(sha256(readFileSync(at("a/b/large")))).toBe(sha256(bytes));
    expect(sha256(await read(at("a/b/large")))).toBe(sha256(bytes));
    expect(await read(at("a/b/large"), 2_999_990, 11)).toEqual(bytes.subarray(-11));
    expect(await read(at("a/b/large"), 7, 0)).toHaveLength(0);
    expect(readdirSync(at("a/b"))).toEqual(["large"]);
  });

  test("a replaced file keeps mode and owner unless others are given, and a link leads to the replaced file", async () => {
    writeFileSync(at("script"), "old");
    chmodSync(at("script"), 0o755);
    chownSync(at("script"), 1234, 4321);
    symlinkSync("script", at("link"));
    expect(await write("link", "new")).toMatchObject({ created: false, entry: { mode: 0o755, uid: 1234, gid: 4321 } });
    expect(lstatSync(at("link")).isSymbolicLink()).toBe(true);
    expect(readFileSync(at("script"), "utf8")).toBe("new");
    const named = await write("script", "newer", { mode: 0o600, owner: "7:8" });
    expect(named.entry).toMatchObject({ mode: 0o600, uid: 7, gid: 8 });
    expect((await write("script", "root", { owner: "root" })).entry).toMatchObject({ uid: 0, gid: 0 });
    expect(await refusal(write("script", "x", { owner: "nobody-here" }))).toContain("user_not_found");
    expect(readFileSync(at("script"), "utf8")).toBe("root");
  });

  test("directories created by a write belong to the owner too", async () => {
    await write("home/src/main.py", "1", { owner: "55:66" });
    expect(statSync(at("home/src"))).toMatchObject({ uid: 55, gid: 66 });
    expect(statSync(at("home")).mode & 0o777).toBe(0o755);
  });

  test("the window of a write is the agent's, within bounds", async () => {
    for (const [named, expected] of [
      [undefined, WINDOW_BYTES],
      [FILE_WINDOW_BYTES, FILE_WINDOW_BYTES],
      [FILE_WINDOW_BYTES + 1, WINDOW_BYTES],
      ["all", WINDOW_BYTES],
    ] as const) {
      let sent = 0;
      const deaf = linkedGuest({
        file_write: (stream) => {
          stream.widenIncoming(Channel.stdin, FILE_WINDOW_BYTES);
          stream.say({ type: "writable", window_bytes: named });
        },
      });
      const request = { path: at("x"), mode: null, owner: null, overwrite: true };
      const writing = writeInGuest(deaf.link, request, async (send) => {
        for (; sent < 4 * FILE_WINDOW_BYTES; sent += 4096) await send(new Uint8Array(4096));
      });
      await until(`${expected} bytes are sent`, () => sent >= expected);
      for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
      expect(sent).toBe(expected);
      deaf.drop();
      await expect(writing).rejects.toMatchObject({ code: "link_closed" });
    }
  });

  test("a slow reader is sent no more than the window that the host has declared", async () => {
    writeFileSync(at("large"), new Uint8Array(4 * FILE_READ_WINDOW_BYTES));
    const sentAhead = async (window_bytes?: number) => {
      let arrived = 0;
      const stream = link.open({ method: "file_read", path: at("large") } as { method: string });
      stream.widenIncoming(Channel.stdout, FILE_READ_WINDOW_BYTES);
      await new Promise((opened) => stream.hear(opened));
      stream.say({ type: "take", offset: 0, length: 4 * FILE_READ_WINDOW_BYTES, window_bytes });
      // No credit is given back.
      void stream.passTo(Channel.stdout, (bytes) => {
        arrived += bytes.byteLength;
      });
      await until("the first window has arrived", () => arrived >= WINDOW_BYTES);
      await link.open({ method: "file_stat", path: dir, follow: true } as { method: string }).finished;
      for (let turn = 0; turn < 50; turn++) await new Promise((done) => setImmediate(done));
      stream.fail("internal", "enough");
      return arrived;
    };
    const sent = [
      await sentAhead(),
      await sentAhead(FILE_READ_WINDOW_BYTES),
      await sentAhead(2 * FILE_READ_WINDOW_BYTES),
    ];
    expect(sent).toEqual([WINDOW_BYTES, FILE_READ_WINDOW_BYTES, WINDOW_BYTES]);
  });

  test("a full disk ends the write, for any remaining data", async () => {
    const full = join(top, "full");
    mkdirSync(full);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", full]);
    try {
      const request = { path: join(full, "large"), mode: null, owner: null, overwrite: true };
      expect(await refusal(writeInGuest(link, request, fill(randomBytes(8_000_000))))).toBe("file_failed ENOSPC");
      expect(readdirSync(full)).toEqual([]);
    } finally {
      execFileSync("umount", [full]);
    }
  });

  test("an aborted write leaves the old file and nothing else", async () => {
    writeFileSync(at("kept"), "kept");
    const cut = writeInGuest(link, { path: at("kept"), mode: null, owner: null, overwrite: true }, async (send) => {
      await send(Buffer.from("half"));
      throw new TypeError("the caller has gone");
    });
    await expect(cut).rejects.toThrow("the caller has gone");
    await until("the temporary file is removed", () => readdirSync(dir).length === 1);
    expect(readFileSync(at("kept"), "utf8")).toBe("kept");
  });

  test("a file is replaced only if it is the expected one, also after its bytes have arrived", async () => {
    writeFileSync(at("f"), "1");
    const { version } = await statInGuest(link, { path: at("f"), follow: true });
    expect(await refusal(write("f", "2", { expect: null }))).toContain("file_changed");
    expect(await refusal(write("g", "2", { expect: version }))).toContain("file_changed");
    const request = { path: at("f"), mode: null, owner: null, overwrite: true, expect: version };
    const late = writeInGuest(link, request, async (send) => {
      appendFileSync(at("f"), "more");
      await send(Buffer.from("2"));
    });
    expect(await refusal(late)).toContain("file_changed");
    const again = await statInGuest(link, { path: at("f"), follow: true });
    expect(await write("f", "2", { expect: again.version })).toMatchObject({ created: false });
    expect(await refusal(write("f", "3", { overwrite: false }))).toBe("file_failed EEXIST");
    expect(await write("h", "3", { overwrite: false })).toMatchObject({ created: true });
    expect(readdirSync(dir).sort()).toEqual(["f", "h"]);
  });

  test("a file generated by the kernel at reading has its real size", async () => {
    const status = await openInGuest(link, "/proc/self/status");
    expect(status.entry.size_bytes).toBeGreaterThan(100);
    status.close();
    expect(String(await read("/proc/self/status"))).toContain("Name:");
  });
});

describe("refusals", () => {
  test("a pipe, a device, a socket and a directory block no call", async () => {
    execFileSync("mkfifo", [at("pipe")]);
    mkdirSync(at("folder"));
    for (const path of [at("pipe"), "/dev/zero", "/dev/tty"]) {
      expect(await refusal(openInGuest(link, path))).toBe("file_failed ENXIO");
    }
    expect(await refusal(write("pipe", "x"))).toBe("file_failed ENXIO");
    expect(await refusal(openInGuest(link, at("folder")))).toBe("file_failed EISDIR");
    expect(await refusal(write("folder", "x"))).toBe("file_failed EISDIR");
    expect(lstatSync(at("pipe")).isFIFO()).toBe(true);
  });

  test("the errors are those of the system calls", async () => {
    writeFileSync(at("file"), "");
    mkdirSync(at("full/inner"), { recursive: true });
    const stat = (path: string) => refusal(statInGuest(link, { path, follow: false }));
    expect(await stat(at("nothing"))).toBe("file_failed ENOENT");
    expect(await stat(at("file/below"))).toBe("file_failed ENOTDIR");
    expect(await refusal(write("file/below", "x"))).toBe("file_failed ENOTDIR");
    expect(await refusal(openInGuest(link, at("nothing")))).toBe("file_failed ENOENT");
    expect(await refusal(removeInGuest(link, { path: at("full"), recursive: false }))).toBe("file_failed ENOTEMPTY");
    expect(await refusal(removeInGuest(link, { path: "/", recursive: true }))).toBe("file_failed EBUSY");
    expect(await refusal(removeInGuest(link, { path: join(top, "drive"), recursive: true }))).toBe("file_failed EBUSY");
    const list = listInGuest(link, { path: at("file"), recursive: false, after_b64: null, limit: 10 });
    expect(await refusal(list)).toBe("file_failed ENOTDIR");
    expect(await refusal(moveInGuest(link, { from: at("file"), to: at("full"), overwrite: false }))).toBe(
      "file_failed EEXIST",
    );
    symlinkSync("nowhere", at("dangling"));
    expect(await refusal(write("dangling", "x"))).toBe("file_failed ENOENT");
    expect(await stat("relative")).toContain("invalid_request");
  });

  test("no file on an unresponsive drive is accessed", async () => {
    dead = true;
    const path = join(top, "drive/file");
    try {
      expect(await refusal(openInGuest(link, path))).toContain("drive_unavailable");
      expect(await refusal(moveInGuest(link, { from: at("x"), to: path, overwrite: false }))).toContain(
        "drive_unavailable",
      );
    } finally {
      dead = false;
    }
  });

  test("an agent built before these calls reports that", async () => {
    const old = linkedGuest({});
    expect(await refusal(statInGuest(old.link, { path: "/", follow: false }))).toContain("unknown_method");
  });
});

describe("directories", () => {
  const names = async (recursive: boolean, limit: number) => {
    const found: string[] = [];
    let pages = 0;
    for (let after_b64: string | null = null; ; pages++) {
      const page = await listInGuest(link, { path: dir, recursive, after_b64, limit });
      const below = page.entries.map(({ path, path_b64 }) =>
        Buffer.from(path_b64 ?? path, path_b64 ? "base64" : "utf8").subarray(dir.length + 1),
      );
      found.push(...below.map((bytes) => bytes.toString("latin1")));
      const last = below.at(-1);
      if (!page.more || !last) return { found, pages: pages + 1 };
      after_b64 = last.toString("base64");
    }
  };

  test("a list has every entry once and in order, page by page, including names that are not UTF-8", async () => {
    for (const each of ["b/y/z", "b/x", "a-dir", "b.d"]) mkdirSync(at(each), { recursive: true });
    for (const each of ["b/x/1", "b/y/z/2", "a", "c"]) writeFileSync(at(each), each);
    writeFileSync(Buffer.concat([Buffer.from(`${dir}/bad`), Buffer.from([0xff])]), "");
    symlinkSync("b", at("link"));
    const flat = ["a", "a-dir", "b", "b.d", "bad\xff", "c", "link"];
    const all = ["a", "a-dir", "b", "b/x", "b/x/1", "b/y", "b/y/z", "b/y/z/2", "b.d", "bad\xff", "c", "link"];
    expect(await names(false, 3)).toEqual({ found: flat, pages: 3 });
    expect(await names(true, 1000)).toEqual({ found: all, pages: 1 });
    for (const limit of [1, 2, 5]) expect((await names(true, limit)).found).toEqual(all);
    const { entries } = await listInGuest(link, { path: dir, recursive: false, after_b64: null, limit: 100 });
    expect(entries.find(({ type }) => type === "symlink")?.target).toBe("b");
    expect(entries.filter(({ path_b64 }) => path_b64 !== undefined)).toHaveLength(1);
  });

  test("an entry deleted during the listing is left out", async () => {
    const many = Array.from({ length: 300 }, (_, index) => String(index).padStart(4, "0"));
    for (const each of many) writeFileSync(at(each), "");
    const listing = names(false, 50);
    rmSync(at("0299"));
    const { found } = await listing;
    expect(found.slice(0, 299)).toEqual(many.slice(0, 299));
  });

  test("mkdir creates missing directories, with mode and owner, and keeps existing ones", async () => {
    const made = await makeDirectoryInGuest(link, { path: at("x/y"), mode: 0o700, owner: "5:6" });
    expect(made).toMatchObject({ created: true, entry: { type: "directory", mode: 0o700, uid: 5, gid: 6 } });
    const again = await makeDirectoryInGuest(link, { path: at("x/y"), mode: 0o755, owner: null });
    expect(again).toMatchObject({ created: false, entry: { mode: 0o700, uid: 5 } });
    writeFileSync(at("file"), "");
    expect(await refusal(makeDirectoryInGuest(link, { path: at("file"), mode: null, owner: null }))).toBe(
      "file_failed EEXIST",
    );
  });

  test("move renames links as links, creates directories, and crosses file systems", async () => {
    mkdirSync(at("from"));
    writeFileSync(at("from/file"), "text");
    symlinkSync("file", at("from/link"));
    const entry = await moveInGuest(link, { from: at("from/link"), to: at("new/place"), overwrite: false });
    expect(entry).toMatchObject({ type: "symlink", target: "file" });
    expect(await refusal(moveInGuest(link, { from: at("from"), to: at("from/in"), overwrite: false }))).toBe(
      "file_failed EINVAL",
    );
    const other = mkdtempSync("/dev/shm/roomd-files-");
    try {
      symlinkSync("file", at("from/link"));
      chmodSync(at("from/file"), 0o751);
      await moveInGuest(link, { from: at("from"), to: join(other, "tree"), overwrite: false });
      expect(readFileSync(join(other, "tree/file"), "utf8")).toBe("text");
      expect(statSync(join(other, "tree/file")).mode & 0o777).toBe(0o751);
      expect(readlinkSync(join(other, "tree/link"))).toBe("file");
      expect(readdirSync(dir)).toEqual(["new"]);
    } finally {
      rmSync(other, { recursive: true });
    }
  });

  test("remove deletes a link and not its target, and a tree only with recursive", async () => {
    mkdirSync(at("tree/deep"), { recursive: true });
    writeFileSync(at("tree/deep/file"), "");
    symlinkSync("tree", at("link"));
    await removeInGuest(link, { path: at("link"), recursive: true });
    expect(readdirSync(at("tree"))).toEqual(["deep"]);
    await removeInGuest(link, { path: at("tree"), recursive: true });
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe("watches", () => {
  const watch = async (request: Partial<Parameters<typeof watchInGuest>[1]> = {}) => {
    const watching = await watchInGuest(link, { path: dir, recursive: false, watch_id: null, after: 0, ...request });
    const seen: FileChange[] = [];
    const over = (async () => {
      for await (const some of watching.changes) seen.push(...some);
    })();
    over.catch(() => {});
    const text = () =>
      seen.map(
        ({ type, path, from }) =>
          `${type} ${path.slice(dir.length + 1)}${from ? ` from ${from.slice(dir.length + 1)}` : ""}`,
      );
    return { ...watching, seen, over, text };
  };

  test("creations, changes, moves and deletions are reported in order, below the directory too", async () => {
    mkdirSync(at("old"));
    const { seen, text, close } = await watch({ recursive: true });
    writeFileSync(at("old/a"), "1");
    renameSync(at("old/a"), at("b"));
    mkdirSync(at("new"));
    await until("the event for the new directory is received", () => text().includes("created new"));
    writeFileSync(at("new/c"), "2");
    await until("the event for the new file is received", () => text().includes("created new/c"));
    rmSync(at("b"));
    await until("the deletion event is received", () => text().includes("deleted b"));
    expect(text().filter((each) => !each.startsWith("modified"))).toEqual([
      "created old/a",
      "moved b from old/a",
      "created new",
      "created new/c",
      "deleted b",
    ]);
    expect(text()).toContain("modified old/a");
    expect(seen.map(({ seq }) => seq)).toEqual(seen.map((_, index) => index + 1));
    close();
  });

  test("files in a directory created with them are not missed", async () => {
    const { text, close } = await watch({ recursive: true });
    mkdirSync(at("deep/er"), { recursive: true });
    writeFileSync(at("deep/er/file"), "");
    await until("the event for the file is received", () => text().includes("created deep/er/file"));
    close();
  });

  test("an interrupted watch resumes after the last change that its reader has", async () => {
    const first = await watch();
    writeFileSync(at("one"), "");
    await until("the event for one is received", () => first.text().includes("created one"));
    const after = first.seen.find(({ type }) => type === "created")?.seq ?? 0;
    first.close();
    writeFileSync(at("two"), "");
    const second = await watch({ watch_id: first.watch_id, after });
    await until("the event for two is received", () => second.text().includes("created two"));
    expect(second.text()).not.toContain("created one");
    expect(await refusal(watch({ watch_id: "unknown", after: 1 }))).toContain("history_gone");
    expect(await refusal(watch({ watch_id: first.watch_id, after: 1e6 }))).toContain("history_gone");
    second.close();
  });

  test("a file is watched by itself, and its end ends the watch", async () => {
    writeFileSync(at("file"), "1");
    const { text, over, seen } = await watch({ path: at("file") });
    appendFileSync(at("file"), "2");
    await until("the modification event is received", () => seen.some(({ type }) => type === "modified"));
    rmSync(at("file"));
    await over;
    expect(text().at(-1)).toBe("deleted file");
  });
});
