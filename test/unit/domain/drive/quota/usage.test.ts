import { execFileSync } from "node:child_process";
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { driveError } from "../../../../../daemon/domain/drive/errors.ts";
import { measureTree } from "../../../../../daemon/domain/drive/quota/measure.ts";
import { SystemError } from "../../../../../daemon/host/files/libc.ts";
import { RoomFixture, streamOf } from "../room-fixture.ts";

const MIB = 1024 * 1024;
let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture({ drive_limit_bytes: 4 * MIB });
});
afterEach(() => room[Symbol.dispose]());

const measured = () => room.drive.measure(room.room);
const megabyte = (count: number) => Buffer.alloc(count * MIB, "x").toString("base64");

describe("measuring a drive", () => {
  it("succeeds if the drive is erased at any moment", async () => {
    // Erased after its first, second or last name was counted.
    for (const when of [1, 2, 3]) {
      const directory = room.path(`erased-${when}`);
      mkdirSync(join(directory, "below"), { recursive: true });
      for (const name of ["a", "b"]) writeFileSync(join(directory, name), "x");
      const self = { pid: process.pid, start_ticks: startTicks() };
      let turnCount = 0;
      const turn = async () => {
        if (turnCount++ === when) rmSync(directory, { recursive: true, force: true });
      };
      const { is_complete, entry_count } = await measureTree(directory, {
        shares: [self],
        pieces: { next: turn, turn },
      });
      expect([is_complete, entry_count <= 3]).toEqual([true, true]);
    }
  });
});

/** Field 22 of this process's stat: when it started. */
function startTicks(): string {
  const stat = readFileSync("/proc/self/stat", "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}

describe("drives retained after their room's end", () => {
  const ofOrg = () => room.drive.measureOrg(room.room.org_id);

  it("count by their measured usage, until they are deleted", async () => {
    room.kept = [1, 2].map((megabytes) => {
      const drive_directory = join(room.outside, `kept-${megabytes}`);
      mkdirSync(drive_directory);
      writeFileSync(join(drive_directory, "f"), Buffer.alloc(megabytes * MIB, "x"));
      return { room_uid: `rom_kept_${megabytes}`, org_id: room.room.org_id, drive_directory };
    });
    expect(await ofOrg()).toBe(3 * MIB);
    room.drive.forget("rom_kept_2");
    expect(await ofOrg()).toBe(MIB);
    room.drive.forget("rom_kept_1");
    room.drive.forget("rom_never");
    expect(await ofOrg()).toBe(0);
  });

  it("count by their last known usage and the writes since then", async () => {
    writeFileSync(room.path("f"), Buffer.alloc(MIB, "x"));
    await measured();
    writeFileSync(room.path("g"), Buffer.alloc(MIB, "x"));
    room.drive.keep(room.room);
    await vi.waitFor(async () => expect(await ofOrg()).toBe(4 * MIB));
  });
});

describe("a call that outlasts its room", () => {
  const ofOrg = () => room.drive.measureOrg(room.room.org_id);
  /** A body of one part, followed by the parts that `rest` enqueues. */
  const uploadOf = (rest: (controller: ReadableStreamDefaultController<Uint8Array>) => Promise<void>) => {
    const taken = Promise.withResolvers<void>();
    const cancelled = Promise.withResolvers<void>();
    let parts = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          if (parts++ === 0) return controller.enqueue(new Uint8Array(MIB));
          taken.resolve();
          await rest(controller);
        },
        cancel: () => cancelled.resolve(),
      },
      { highWaterMark: 0 },
    );
    return { body, taken: taken.promise, cancelled: cancelled.promise };
  };

  it("as an upload leaves nothing on a retained drive, and takes nothing of the organization's cap", async () => {
    writeFileSync(room.path("there"), Buffer.alloc(MIB, "x"));
    await measured();
    const ended = Promise.withResolvers<void>();
    const { body, taken } = uploadOf(async (controller) => {
      await ended.promise;
      controller.enqueue(new Uint8Array(MIB));
      controller.close();
    });
    const put = room.codeOf("file_put", { path: "f" }, { body });
    await taken;
    const retired = room.end();
    ended.resolve();
    expect(await put).toBe("room_destroying");
    expect(readdirSync(retired)).toEqual(["there"]);
    await vi.waitFor(async () => expect(await ofOrg()).toBe(MIB));
    room.drive.forget(room.room.room_uid);
    expect(await ofOrg()).toBe(0);
  });

  it("is aborted although its client sends nothing more", async () => {
    const { body, taken, cancelled } = uploadOf(() => new Promise<never>(() => {}));
    const put = room.codeOf("file_put", { path: "f" }, { body });
    await taken;
    const retired = room.end();
    const late = new Promise((resolve) => setTimeout(resolve, 5000, "still waits"));
    expect(await Promise.race([put, late])).toBe("room_destroying");
    await cancelled;
    expect(readdirSync(retired)).toEqual([]);
  });

  it.each<[string, object]>([
    ["fs_write", { path: "f", content: "x" }],
    ["fs_write", { path: "log", content: "x", append: true }],
    ["fs_mkdir", { path: "d" }],
    ["file_put", { path: "f" }],
  ])("as %s of %o changes nothing", async (name, input) => {
    writeFileSync(room.path("log"), "1");
    let retired = "";
    room.kernelUse = () => {
      room.kernelUse = () => null;
      retired = room.end();
      return null;
    };
    const body = streamOf("x");
    expect(await room.codeOf(name, { ...input }, name === "file_put" ? { body } : {})).toBe("room_destroying");
    expect(readdirSync(retired)).toEqual(["log"]);
    expect(readFileSync(join(retired, "log"), "utf8")).toBe("1");
  });

  it("before its handler finds no room", async () => {
    const { found } = room;
    room.found = () => {
      room.end();
      room.found = () => ({ ...room.room, state: "destroyed" });
      return found();
    };
    expect(await room.codeOf("fs_write", { path: "f", content: "x" })).toBe("room_not_found");
  });
});

describe("the quota of a drive", () => {
  it("measures the allocated space: no holes, each file once", async () => {
    expect(await measured()).toMatchObject({ used_bytes: 0, file_count: 0, entry_count: 0, is_complete: true });
    room.drive.forget(room.room.room_uid);
    mkdirSync(room.path("d"));
    writeFileSync(room.path("d/f"), Buffer.alloc(MIB));
    linkSync(room.path("d/f"), room.path("again"));
    writeFileSync(room.path("holes"), "");
    truncateSync(room.path("holes"), 1024 * MIB);
    const { used_bytes, file_count } = await measured();
    expect(file_count).toBe(2);
    expect(used_bytes).toBeGreaterThanOrEqual(MIB);
    expect(used_bytes).toBeLessThan(MIB + 64 * 1024);
  });

  it("counts writes and deletions of the API immediately", async () => {
    await measured();
    await room.call("fs_write", { path: "a", content_b64: megabyte(1) });
    await room.call("file_put", { path: "b" }, { body: streamOf(new Uint8Array(MIB)) });
    await room.call("fs_write", { path: "a", content_b64: megabyte(1), append: true });
    const used = await measured();
    expect(used.file_count).toBe(2);
    expect(Math.round(used.used_bytes / MIB)).toBe(3);
    await room.call("fs_write", { path: "b", content: "small" });
    await room.call("fs_delete", { path: "a" });
    const left = await measured();
    expect(left.file_count).toBe(1);
    expect(left.used_bytes).toBeLessThan(MIB / 2);
    room.drive.forget(room.room.room_uid);
    expect(await measured()).toEqual(left);
  });

  it("rejects writes above it, also in the middle of a stream, and removes the partial file", async () => {
    expect(await room.codeOf("fs_write", { path: "a", content_b64: megabyte(5) })).toBe("drive_full");
    expect(await room.codeOf("fs_write", { path: "a", content_b64: megabyte(3) })).toBe("done");
    expect(await room.codeOf("fs_write", { path: "a", content_b64: megabyte(2), append: true })).toBe("drive_full");
    let sent = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        sent += MIB / 4;
        controller.enqueue(new Uint8Array(MIB / 4));
      },
    });
    await expect(room.call("file_put", { path: "b" }, { body })).rejects.toMatchObject({
      code: "drive_full",
      options: { details: { limit_bytes: 4 * MIB } },
    });
    expect(sent).toBeLessThanOrEqual(2 * MIB);
    expect(readdirSync(room.directory)).toEqual(["a"]);
    // A replaced file makes room for its replacement.
    expect(await room.codeOf("fs_write", { path: "a", content_b64: megabyte(3) })).toBe("done");
    expect(await room.codeOf("fs_delete", { path: "a" })).toBe("done");
    expect(await room.codeOf("fs_write", { path: "b", content_b64: megabyte(3) })).toBe("done");
  });

  it("holds for concurrent writes", async () => {
    const codes = await Promise.all(
      Array.from({ length: 8 }, (_, index) => room.codeOf("fs_write", { path: `f${index}`, content_b64: megabyte(1) })),
    );
    expect(codes.filter((code) => code === "done").length).toBeLessThanOrEqual(4);
    expect(codes.filter((code) => code === "done").length).toBeGreaterThan(0);
    expect(new Set(codes)).toEqual(new Set(["done", "drive_full"]));
  });

  it("includes writes of guests", async () => {
    expect(await room.codeOf("fs_write", { path: "a", content: "x" })).toBe("done");
    writeFileSync(room.path("guest"), Buffer.alloc(5 * MIB));
    await expect
      .poll(() => room.codeOf("fs_write", { path: "a", content: "x", append: true }), { timeout: 10_000 })
      .toBe("drive_full");
    expect(await room.codeOf("fs_mkdir", { path: "d" })).toBe("drive_full");
    expect(await room.codeOf("fs_delete", { path: "guest" })).toBe("done");
    expect(await room.codeOf("fs_write", { path: "a", content: "x", append: true })).toBe("done");
  });

  it("is correct again after a tree is deleted or replaced", async () => {
    mkdirSync(room.path("d/e"), { recursive: true });
    for (const name of ["one", "two"]) writeFileSync(room.path("d/e", name), Buffer.alloc(MIB));
    writeFileSync(room.path("big"), Buffer.alloc(MIB));
    expect((await measured()).file_count).toBe(3);
    expect(await room.codeOf("fs_move", { from: "d/e/one", to: "big", overwrite: true })).toBe("done");
    expect((await measured()).file_count).toBe(2);
    expect(await room.codeOf("fs_delete", { path: "d", recursive: true })).toBe("done");
    expect((await measured()).file_count).toBe(1);
  });

  it("does not read through a file that claims more than the quota", async () => {
    writeFileSync(room.path("holes"), "");
    truncateSync(room.path("holes"), 2 ** 42);
    expect(await room.codeOf("fs_write", { path: "holes", content: "x", append: true })).toBe("file_too_large");
    expect(await room.codeOf("fs_write", { path: "holes", content: "x", if_match: "0" })).toBe("file_too_large");
    expect((await room.call("fs_read", { path: "holes", length: 5 })).body).toMatchObject({
      size_bytes: 2 ** 42,
      length: 5,
    });
  });
});

describe("a full disk", () => {
  it("returns disk_full, keeps existing files and works again once there is space", async ({ skip }) => {
    try {
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", room.directory], { stdio: "pipe" });
    } catch (error) {
      console.log(`skipped: no tmpfs can be mounted here: ${String(error).split("\n")[0]}`);
      return skip();
    }
    try {
      await fillAndFree();
    } finally {
      execFileSync("umount", [room.directory]);
    }
  });
});

async function fillAndFree(): Promise<void> {
  expect(await room.codeOf("fs_write", { path: "kept", content: "kept" })).toBe("done");
  expect(await room.codeOf("fs_write", { path: "log", content: "1" })).toBe("done");
  expect(await room.codeOf("fs_write", { path: "big", content_b64: megabyte(3) })).toBe("disk_full");
  expect(await room.codeOf("fs_write", { path: "kept", content_b64: megabyte(3) })).toBe("disk_full");
  expect(await room.codeOf("fs_write", { path: "log", content_b64: megabyte(3), append: true })).toBe("disk_full");
  expect(await room.codeOf("file_put", { path: "big" }, { body: streamOf(new Uint8Array(3 * MIB)) })).toBe("disk_full");
  expect(readdirSync(room.directory).sort()).toEqual(["kept", "log"]);
  expect(readFileSync(room.path("kept"), "utf8") + readFileSync(room.path("log"), "utf8")).toBe("kept1");
  expect(await room.codeOf("fs_write", { path: "fits", content_b64: megabyte(1) })).toBe("done");
  expect(await room.codeOf("fs_write", { path: "more", content_b64: megabyte(1) })).toBe("disk_full");
  expect(await room.codeOf("fs_delete", { path: "fits" })).toBe("done");
  expect(await room.codeOf("fs_write", { path: "more", content_b64: megabyte(1) })).toBe("done");
}

describe("a drive with a kernel quota", () => {
  it("is up to date immediately, and calls in progress are not counted twice", async () => {
    const use = { bytes: MIB, inodes: 3 };
    room.kernelUse = () => use;
    expect(await measured()).toMatchObject({ used_bytes: MIB, entry_count: 3, kept_by_kernel: true });
    use.bytes = 3 * MIB;
    expect((await measured()).used_bytes).toBe(3 * MIB);
    expect(await room.codeOf("fs_write", { path: "more", content_b64: megabyte(2) })).toBe("drive_full");
    // From here on the kernel reports the actual files, temporary ones included.
    room.kernelUse = () => {
      const sizes = readdirSync(room.directory).map((name) => statSync(room.path(name)).size);
      return { bytes: sizes.reduce((sum, size) => sum + size, 0), inodes: sizes.length };
    };
    let seen = 0;
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        if (seen === 3) {
          expect((await measured()).used_bytes).toBeLessThan(MIB);
          expect(await room.codeOf("fs_write", { path: "fits", content: "x" })).toBe("done");
          expect(await room.codeOf("fs_write", { path: "not", content_b64: megabyte(3) })).toBe("drive_full");
          controller.close();
          return;
        }
        seen++;
        controller.enqueue(new Uint8Array(MIB));
      },
    });
    expect(await room.codeOf("file_put", { path: "big" }, { body })).toBe("done");
  });

  it("returns drive_full when the kernel refuses a write with EDQUOT", () => {
    expect(driveError(new SystemError("EDQUOT", "write"))).toMatchObject({ code: "drive_full" });
  });
});
