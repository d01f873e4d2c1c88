import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { longBodyOf, RoomFixture, sha256 } from "../room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

describe("fs_write", () => {
  it("creates, then replaces, with mode 0644 and root as owner", async () => {
    const first = await room.call("fs_write", { path: "/mnt/drive/a/b/x.txt", content: "héllo" });
    expect(first.outcome).toBe("created");
    expect(first.body).toMatchObject({
      path: "/a/b/x.txt",
      guest_path: "/mnt/drive/a/b/x.txt",
      size_bytes: 6,
      sha256: sha256("héllo"),
      mode: "0644",
      created: true,
    });
    const { path, size_bytes, sha256: digest } = first.body;
    expect(first.call.audit).toEqual({
      room_id: "room",
      room_uid: "rom_1",
      details: { path, size_bytes, sha256: digest },
    });
    const file = statSync(room.path("a/b/x.txt"));
    expect([file.mode & 0o7777, file.uid, file.gid]).toEqual([0o644, process.getuid?.(), process.getgid?.()]);
    expect(statSync(room.path("a/b")).mode & 0o7777).toBe(0o755);

    const second = await room.call("fs_write", { path: "a/b/x.txt", content_b64: "AP8=", mode: "755" });
    expect(second.outcome).toBe("replaced");
    expect(second.body).toMatchObject({ size_bytes: 2, mode: "0755", created: false });
    expect(readFileSync(room.path("a/b/x.txt"))).toEqual(Buffer.from([0, 255]));
    expect(readdirSync(room.path("a/b"))).toEqual(["x.txt"]);
  });

  it("accepts an empty file and one of 16 MiB, and rejects more", async () => {
    expect((await room.call("fs_write", { path: "empty", content: "" })).body.size_bytes).toBe(0);
    const most = Buffer.alloc(16 * 1024 * 1024, "x").toString("base64");
    expect((await room.call("fs_write", { path: "most", content_b64: most })).body.size_bytes).toBe(16 * 1024 * 1024);
    const over = Buffer.alloc(16 * 1024 * 1024 + 1, "x").toString("base64");
    expect(await room.codeOf("fs_write", { path: "over", content_b64: over })).toBe("file_too_large");
    expect(readdirSync(room.directory).sort()).toEqual(["empty", "most"]);
  });

  it.each([
    [{}, "required"],
    [{ content: "a", content_b64: "YQ==" }, "conflicting_fields"],
    [{ content_b64: "YQ" }, "base64"],
    [{ content_b64: "YQ==\n" }, "base64"],
    [{ content_b64: "YR==" }, "base64"],
    [{ content_b64: "Y_==" }, "base64"],
  ])("rejects the content %j: %s", async (content, code) => {
    expect(await room.codeOf("fs_write", { path: "x", ...content })).toBe(code);
    expect(readdirSync(room.directory)).toEqual([]);
  });

  it("rejects directories and dangling links", async () => {
    mkdirSync(room.path("d"));
    writeFileSync(room.path("f"), "f");
    symlinkSync("nothing", room.path("dangling"));
    for (const append of [false, true]) {
      expect(await room.codeOf("fs_write", { path: "d", content: "", append })).toBe("is_directory");
      expect(await room.codeOf("fs_write", { path: "/", content: "", append })).toBe("is_directory");
      expect(await room.codeOf("fs_write", { path: "f/x", content: "", append })).toBe("invalid_path");
      expect(await room.codeOf("fs_write", { path: "dangling/x", content: "", append })).toBe("invalid_path");
    }
    expect(readdirSync(room.directory).sort()).toEqual(["d", "dangling", "f"]);
  });

  it("keeps an existing file with overwrite: false", async () => {
    writeFileSync(room.path("f"), "old");
    for (const append of [false, true]) {
      expect(await room.codeOf("fs_write", { path: "f", content: "new", overwrite: false, append })).toBe(
        "already_exists",
      );
    }
    expect(readFileSync(room.path("f"), "utf8")).toBe("old");
    expect(await room.codeOf("fs_write", { path: "g", content: "new", overwrite: false })).toBe("done");
  });

  it("compares the digest with if_match", async () => {
    const missing = { path: "f", content: "x", if_match: sha256("") };
    expect(await room.codeOf("fs_write", missing)).toBe("precondition_failed");
    expect(await room.codeOf("fs_write", { ...missing, append: true })).toBe("precondition_failed");
    writeFileSync(room.path("f"), "one");
    expect(await room.codeOf("fs_write", { path: "f", content: "x", if_match: sha256("two") })).toBe(
      "precondition_failed",
    );
    expect(readdirSync(room.directory)).toEqual(["f"]);
    expect(await room.codeOf("fs_write", { path: "f", content: "two", if_match: sha256("one") })).toBe("done");
    expect(
      await room.codeOf("fs_write", { path: "f", content: "!", append: true, if_match: `"${sha256("two")}"` }),
    ).toBe("done");
    expect(readFileSync(room.path("f"), "utf8")).toBe("two!");
  });

  it("admits exactly one of many with the same if_match", async () => {
    writeFileSync(room.path("f"), "0");
    const tries = Array.from({ length: 20 }, (_, index) =>
      room.codeOf("fs_write", {
        path: "f",
        content: `writer ${index}`,
        if_match: sha256("0"),
        append: index % 2 === 0,
      }),
    );
    const codes = await Promise.all(tries);
    expect(codes.filter((code) => code === "done")).toHaveLength(1);
    expect(codes.filter((code) => code === "precondition_failed")).toHaveLength(19);
  });

  it("stores the last of many concurrent writes whole", async () => {
    const contents = Array.from({ length: 16 }, (_, index) => `${index}`.padEnd(300_000, `${index},`));
    await Promise.all(contents.map((content) => room.call("fs_write", { path: "f", content })));
    expect(contents).toContain(readFileSync(room.path("f"), "utf8"));
    expect(readdirSync(room.directory)).toEqual(["f"]);
  });

  it("shows readers the old file or the new one, never a mixture", async () => {
    const [one, two] = ["1".repeat(2_000_000), "2".repeat(1_000_000)];
    await room.call("fs_write", { path: "f", content: one });
    let reads = 0;
    let writing = true;
    const reader = (async () => {
      while (writing) {
        const { content } = await longBodyOf(await room.call("fs_read", { path: "f" }));
        expect(content === one || content === two).toBe(true);
        reads++;
      }
    })();
    for (let round = 0; round < 15; round++) {
      await room.call("fs_write", { path: "f", content: round % 2 ? one : two });
    }
    writing = false;
    await reader;
    expect(reads).toBeGreaterThan(0);
  });

  it("replaces a link and keeps its target", async () => {
    writeFileSync(room.path("target"), "target");
    symlinkSync("target", room.path("link"));
    expect((await room.call("fs_write", { path: "link", content: "new" })).body.created).toBe(false);
    expect(readFileSync(room.path("target"), "utf8")).toBe("target");
    expect(statSync(room.path("link")).isFile()).toBe(true);
    expect(readFileSync(room.path("link"), "utf8")).toBe("new");
  });

  it("rejects changes while the room is being destroyed", async () => {
    writeFileSync(room.path("f"), "x");
    room.room.state = "destroying";
    expect(await room.codeOf("fs_write", { path: "f", content: "" })).toBe("room_destroying");
    expect(await room.codeOf("fs_mkdir", { path: "d" })).toBe("room_destroying");
    expect(await room.codeOf("fs_move", { from: "f", to: "g" })).toBe("room_destroying");
    expect(await room.codeOf("fs_delete", { path: "f" })).toBe("room_destroying");
    expect(await room.codeOf("file_put", { path: "f" })).toBe("room_destroying");
    expect((await room.call("fs_read", { path: "f" })).body.content).toBe("x");
  });
});

describe("fs_write with append", () => {
  it("creates, then appends, keeping the file, its mode and its other names", async () => {
    expect((await room.call("fs_write", { path: "a/log", content: "1\n", append: true })).outcome).toBe("created");
    chmodSync(room.path("a/log"), 0o600);
    const { ino } = statSync(room.path("a/log"));
    const added = await room.call("fs_write", { path: "a/log", content: "2\n", append: true });
    expect(added.outcome).toBe("replaced");
    expect(added.body).toMatchObject({ size_bytes: 4, sha256: sha256("1\n2\n"), mode: "0600", created: false });
    expect(statSync(room.path("a/log")).ino).toBe(ino);
    const withMode = await room.call("fs_write", { path: "a/log", content: "", append: true, mode: "0640" });
    expect(withMode.body).toMatchObject({ size_bytes: 4, mode: "0640" });
  });

  it("loses none of many concurrent appends", async () => {
    const lines = Array.from({ length: 100 }, (_, index) => `line ${index}\n`);
    await Promise.all(lines.map((content) => room.call("fs_write", { path: "log", content, append: true })));
    expect(readFileSync(room.path("log"), "utf8").split("\n").filter(Boolean).sort()).toEqual(
      lines.map((line) => line.trim()).sort(),
    );
  });

  it("follows a link within the drive, and names a dangling one", async () => {
    writeFileSync(room.path("target"), "1");
    symlinkSync("target", room.path("link"));
    await room.call("fs_write", { path: "link", content: "2", append: true });
    expect(readFileSync(room.path("target"), "utf8")).toBe("12");
    expect(readlinkSync(room.path("link"))).toBe("target");
    symlinkSync("nothing", room.path("dangling"));
    expect(await room.codeOf("fs_write", { path: "dangling", content: "2", append: true })).toBe("invalid_path");
  });
});
