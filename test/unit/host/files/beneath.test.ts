import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loopTime, Pieces } from "../../../../daemon/core/loop/index.ts";
import { errnoOf } from "../../../../daemon/core/service-error.ts";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { fromBytes, HERE, joinRaw, toRaw, toText } from "../../../../daemon/host/files/raw-path.ts";

const pieces = new Pieces(loopTime, "host", "room.drive");

const RUN_MS = process.env.ROOMD_TEST_LONG === "1" ? 60_000 : 3000;
const SWAP_LOOP = fileURLToPath(new URL("../../domain/drive/swap-loop.ts", import.meta.url));

let base: string;
let directory: string;
let root: Beneath;
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "roomd-beneath-"));
  directory = join(base, "drive");
  mkdirSync(directory);
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/secret"), "secret");
  root = Beneath.open(directory);
});
afterEach(() => {
  root[Symbol.dispose]();
  rmSync(base, { recursive: true, force: true });
});

/** Descriptors of entries of this test; earlier tests of the process may still close theirs. */
const openFiles = () => readdirSync("/proc/self/fd").filter((fd) => targetOf(fd).startsWith(base)).length;

function targetOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`);
  } catch {
    return "";
  }
}

/** Errno name of a failed operation, or "done". */
function errno(work: () => Disposable | AsyncDisposable): string | null {
  try {
    const opened = work();
    if (Symbol.dispose in opened) opened[Symbol.dispose]();
    else void opened[Symbol.asyncDispose]();
    return "done";
  } catch (error) {
    return errnoOf(error);
  }
}

describe("Beneath", () => {
  it("opens files and directories, through links within", async () => {
    mkdirSync(join(directory, "d/e"), { recursive: true });
    writeFileSync(join(directory, "d/f"), "content");
    symlinkSync("../f", join(directory, "d/e/up"));
    symlinkSync("d/e/up", join(directory, "link"));
    await using file = root.file(toRaw("link"), "read");
    expect((await file.read(0, 100)).toString()).toBe("content");
    expect((await file.read(3, 2)).toString()).toBe("te");
    expect(errno(() => root.directory(toRaw("d/e")))).toBe("done");
    expect(errno(() => root.directory(HERE))).toBe("done");
  });

  it("fails with the matching errno", () => {
    mkdirSync(join(directory, "d"));
    writeFileSync(join(directory, "f"), "");
    symlinkSync(join(directory, "f"), join(directory, "absolute"));
    symlinkSync("../outside", join(directory, "out"));
    symlinkSync("loop", join(directory, "loop"));
    symlinkSync("/proc/self/fd/0", join(directory, "magic"));
    symlinkSync("d", join(directory, "plain"));
    const file = (path: string) => errno(() => root.file(toRaw(path), "read"));
    expect(file("no")).toBe("ENOENT");
    expect(file("f/x")).toBe("ENOTDIR");
    expect(file("d")).toBe("EISDIR");
    expect(file("out/secret")).toBe("EXDEV");
    expect(file("absolute")).toBe("EXDEV");
    expect(file("magic")).toBe("EXDEV");
    expect(file("loop")).toBe("ELOOP");
    expect(file("..")).toBe("EXDEV");
    expect(file("d/../../outside/secret")).toBe("EXDEV");
    expect(file("x".repeat(256))).toBe("ENAMETOOLONG");
    expect(errno(() => root.directory(toRaw("f")))).toBe("ENOTDIR");
    expect(errno(() => root.directory(toRaw("plain")))).toBe("done");
    expect(root.plainDirectory(toRaw("plain"))).toBeNull();
    expect(root.plainDirectory(toRaw("f"))).toBeNull();
    expect(root.plainDirectory(toRaw("no"))).toBeNull();
    expect(errno(() => root.newFile(toRaw("f")))).toBe("EEXIST");
    expect(errno(() => root.newFile(toRaw("out")))).toBe("EEXIST");
  });

  it("accepts names of any bytes", async () => {
    const name = fromBytes(Buffer.from([0x61, 0xff, 0x0a, 0xc3]));
    await using file = root.newFile(name);
    await file.write(Buffer.from("x"));
    expect(readdirSync(Buffer.from(directory), { encoding: "buffer" })).toEqual([
      Buffer.from([0x61, 0xff, 0x0a, 0xc3]),
    ]);
    await root.rename(name, root, toRaw("é"), "refuse");
    expect(readdirSync(directory)).toEqual(["é"]);
    expect(toText(toRaw("é/ü"))).toBe("é/ü");
    expect(joinRaw(HERE, toRaw("a"))).toBe("a");
  });

  it("renames onto an existing name only if allowed", async () => {
    writeFileSync(join(directory, "a"), "a");
    writeFileSync(join(directory, "b"), "b");
    await expect(root.rename(toRaw("a"), root, toRaw("b"), "refuse")).rejects.toMatchObject({ code: "EEXIST" });
    await root.rename(toRaw("a"), root, toRaw("b"), "replace");
    expect(readFileSync(join(directory, "b"), "utf8")).toBe("a");
  });

  it("sets modes regardless of the directory's group and the umask", async () => {
    chmodSync(directory, 0o2777);
    const before = process.umask(0o077);
    try {
      await root.makeDirectory(toRaw("d"), 0o775);
      await using file = root.newFile(toRaw("f"));
      file.own(0o664);
    } finally {
      process.umask(before);
    }
    expect(statSync(join(directory, "d")).mode & 0o7777).toBe(0o775);
    expect(statSync(join(directory, "f")).mode & 0o7777).toBe(0o664);
  });

  it("keeps a descriptor in use until the call is done, and none afterwards", async () => {
    writeFileSync(join(directory, "f"), Buffer.alloc(8_000_000, "x"));
    const before = openFiles();
    const file = root.file(toRaw("f"), "read");
    const digest = expect(file.digest(8_000_000, new AbortController().signal, pieces)).rejects.toThrow("closed");
    const reading = file.read(0, 8_000_000);
    await file[Symbol.asyncDispose]();
    expect((await reading).length).toBe(8_000_000);
    await digest;
    await expect(file.read(0, 1)).rejects.toThrow("closed");
    expect(openFiles()).toBe(before);
  });

  it(
    `never opens anything outside while entries are swapped (${RUN_MS / 1000} s)`,
    async () => {
      const child = spawn(process.execPath, [SWAP_LOOP, directory, join(base, "outside")], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const outside = statSync(join(base, "outside"));
      const secret = statSync(join(base, "outside/secret"));
      const forbidden = new Set([outside.ino, secret.ino, statSync(base).ino].map(String));
      const codes = new Map<string, number>();
      const before = openFiles();
      let tries = 0;
      try {
        await new Promise((resolve) => child.stdout.once("data", resolve));
        const ways = ["absolute", "relative", "dots", "dots-out", "low/a/b/c/outside", "low/a/b/c/inner"].map(toRaw);
        const files = [...ways.map((way) => joinRaw(way, toRaw("secret"))), toRaw("file"), toRaw("pipe")];
        const end = performance.now() + RUN_MS;
        const attempt = async (open: () => Beneath | Awaited<ReturnType<typeof root.file>>) => {
          tries++;
          let code = "opened";
          try {
            const opened = open();
            const facts = opened instanceof Beneath ? opened.ownFacts() : opened.facts;
            if (forbidden.has(facts.identity.split(":")[2] ?? "")) code = "ESCAPED";
            if (opened instanceof Beneath) opened[Symbol.dispose]();
            else await opened[Symbol.asyncDispose]();
          } catch (error) {
            code = errnoOf(error) ?? String(error);
          }
          codes.set(code, (codes.get(code) ?? 0) + 1);
        };
        while (performance.now() < end) {
          for (const way of ways) await attempt(() => root.directory(way));
          for (const path of files) await attempt(() => root.file(path, "read"));
        }
      } finally {
        child.kill("SIGKILL");
      }
      console.log(
        `${tries} tries: ${[...codes]
          .toSorted()
          .map(([code, count]) => `${code} ${count}`)
          .join(", ")}`,
      );
      expect(
        [...codes.keys()].filter((code) => !["opened", "EXDEV", "ENOENT", "ENXIO", "EAGAIN"].includes(code)),
      ).toEqual([]);
      expect(codes.get("opened")).toBeGreaterThan(0);
      expect(codes.get("EXDEV")).toBeGreaterThan(0);
      expect(openFiles()).toBe(before);
    },
    RUN_MS + 30_000,
  );
});
