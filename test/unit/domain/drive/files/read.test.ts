import { appendFileSync, mkdirSync, readdirSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { textOf } from "../../../../../daemon/core/text.ts";
import { rangeOf } from "../../../../../daemon/domain/drive/files/range.ts";
import { bytesOf, longBodyOf, RoomFixture, sha256 } from "../room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

describe("fs_read", () => {
  it("returns text, base64, digest and size", async () => {
    writeFileSync(room.path("f"), "\ufeffhé\n");
    const { body, call } = await room.call("fs_read", { path: "/mnt/drive/f" });
    expect(body).toMatchObject({
      path: "/f",
      guest_path: "/mnt/drive/f",
      size_bytes: 7,
      offset: 0,
      length: 7,
      eof: true,
      content: "\ufeffhé\n",
      content_b64: Buffer.from("\ufeffhé\n").toString("base64"),
      sha256: sha256("\ufeffhé\n"),
    });
    expect(call.audit.details).toEqual({ path: "/f", size_bytes: 7, sha256: body.sha256 });
  });

  it("has no text for bytes that are not UTF-8, nor for a part that cuts a character", async () => {
    writeFileSync(room.path("binary"), Buffer.from([0x61, 0xff]));
    expect((await room.call("fs_read", { path: "binary" })).body).toMatchObject({ content: null, content_b64: "Yf8=" });
    writeFileSync(room.path("text"), "é");
    expect((await room.call("fs_read", { path: "text", length: 1 })).body.content).toBeNull();
  });

  it.each([
    [{ offset: 2, length: 3 }, "234", false],
    [{ offset: 8 }, "89", true],
    [{ offset: 8, length: 100 }, "89", true],
    [{ length: 0 }, "", false],
    [{ offset: 10 }, "", true],
  ])("reads the part %j", async (part, content, eof) => {
    writeFileSync(room.path("f"), "0123456789");
    const { body } = await room.call("fs_read", { path: "f", ...part });
    expect(body).toMatchObject({ content, eof, length: content.length, size_bytes: 10, sha256: sha256(content) });
    const raw = await room.call("fs_read", { path: "f", format: "raw", ...part });
    expect((await bytesOf(raw)).toString()).toBe(content);
    expect(raw.bytes?.partial).toBe(content !== "");
  });

  it("rejects an offset beyond the end, a directory and a missing file", async () => {
    writeFileSync(room.path("f"), "x");
    mkdirSync(room.path("d"));
    expect(await room.codeOf("fs_read", { path: "f", offset: 2 })).toBe("range_not_satisfiable");
    expect(await room.codeOf("fs_read", { path: "d" })).toBe("is_directory");
    expect(await room.codeOf("fs_read", { path: "/" })).toBe("is_directory");
    expect(await room.codeOf("fs_read", { path: "no" })).toBe("path_not_found");
    expect(await room.codeOf("fs_read", { path: "f/x" })).toBe("path_not_found");
    expect(await room.codeOf("fs_read", { path: "a/../f" })).toBe("invalid_path");
  });

  it("returns 16 MiB of a larger file, and all of it raw", async () => {
    writeFileSync(room.path("f"), "");
    truncateSync(room.path("f"), 17 * 1024 * 1024);
    const body = await longBodyOf(await room.call("fs_read", { path: "f" }));
    expect(body).toMatchObject({ length: 16 * 1024 * 1024, size_bytes: 17 * 1024 * 1024, eof: false });
    const raw = await room.call("fs_read", { path: "f", format: "raw" });
    expect((await bytesOf(raw)).length).toBe(17 * 1024 * 1024);
  });

  it.each([
    ["letters that pieces cut", '\ufeff\u0001"\\é€😀\n'.repeat(30_000)],
    ["a letter that the end cuts", Buffer.from("é".repeat(100_000)).subarray(0, -1)],
    ["bytes that are no text from the last piece on", Buffer.concat([Buffer.alloc(200_000, "x"), Buffer.from([0xff])])],
  ])("returns a long part like a short one: %s", async (_, written) => {
    const bytes = Buffer.from(written);
    writeFileSync(room.path("f"), bytes);
    const answer = await room.call("fs_read", { path: "f", offset: 3 });
    const part = bytes.subarray(3);
    const digest = sha256(part);
    expect(await longBodyOf(answer)).toEqual({
      ...{
        path: "/f",
        guest_path: "/mnt/drive/f",
        size_bytes: bytes.length,
        offset: 3,
        length: part.length,
        eof: true,
      },
      ...{ content: textOf(part), content_b64: part.toString("base64"), sha256: digest },
      modified_at: expect.any(String),
    });
    expect(answer.call.audit.details).toEqual({ path: "/f", size_bytes: part.length, sha256: digest });
  });

  it("sends no part of a file that has changed since it was validated", async () => {
    writeFileSync(room.path("f"), "a".repeat(1024 * 1024));
    const answer = await room.call("fs_read", { path: "f" });
    writeFileSync(room.path("f"), "b".repeat(1024 * 1024));
    await expect(longBodyOf(answer)).rejects.toThrow("changed");
    const longer = await room.call("fs_read", { path: "f" });
    appendFileSync(room.path("f"), "c");
    expect((await longBodyOf(longer)).content).toBe("b".repeat(1024 * 1024));
  });

  it("keeps no file open for a disconnected caller", async () => {
    writeFileSync(room.path("f"), "a".repeat(1024 * 1024));
    const open = () => readdirSync("/proc/self/fd").length;
    const before = open();
    const controller = new AbortController();
    const answers = await Promise.all([1, 2].map(() => room.call("fs_read", { path: "f" }, {}, controller.signal)));
    expect(open()).toBe(before + 2);
    await answers[0]?.stream?.bytes.cancel();
    controller.abort();
    await vi.waitFor(() => expect(open()).toBe(before));
  });

  it("survives any modification time", async () => {
    writeFileSync(room.path("f"), "x");
    for (const seconds of [-1e10, 1e11, 0]) {
      utimesSync(room.path("f"), seconds, seconds);
      expect((await room.call("fs_stat", { path: "f" })).body.modified_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    }
  });
});

describe("file_get", () => {
  it("streams the file with a strong validator that changes with it", async () => {
    const content = "0123456789".repeat(100_000);
    writeFileSync(room.path("f"), content);
    const got = await room.call("file_get", { path: "f" });
    expect(got.bytes).toMatchObject({ offset: 0, length: 1_000_000, size_bytes: 1_000_000, partial: false });
    expect((await bytesOf(got)).toString()).toBe(content);
    const etag = got.bytes?.etag ?? "";
    expect(etag).toMatch(/^"[\w-]+"$/);
    expect((await room.call("file_get", { path: "f" }, { if_none_match: `"a", ${etag}` })).unchanged).toEqual({ etag });
    expect((await room.call("file_get", { path: "f" }, { if_none_match: "*" })).unchanged).toEqual({ etag });
    writeFileSync(room.path("f"), content.replace("0", "1"));
    utimesSync(room.path("f"), 0, 0);
    const changed = await room.call("file_get", { path: "f" }, { if_none_match: etag });
    expect(changed.bytes?.etag).not.toBe(etag);
    await changed.bytes?.stream.cancel();
  });

  it("returns a range, and rejects one outside the file with its size", async () => {
    writeFileSync(room.path("f"), "0123456789");
    const got = await room.call("file_get", { path: "f" }, { range: "bytes=2-4" });
    expect(got.bytes).toMatchObject({ offset: 2, length: 3, size_bytes: 10, partial: true });
    expect((await bytesOf(got)).toString()).toBe("234");
    await expect(room.call("file_get", { path: "f" }, { range: "bytes=10-" })).rejects.toMatchObject({
      code: "range_not_satisfiable",
      options: { details: { size_bytes: 10 } },
    });
  });

  it.each([
    ["bytes=0-0", [0, 1, true]],
    ["bytes=5-", [5, 5, true]],
    ["bytes=5-99", [5, 5, true]],
    ["bytes=-3", [7, 3, true]],
    ["bytes=-99", [0, 10, true]],
    ["BYTES= 1 - 2 ", [1, 2, true]],
    ["bytes=0-1,3-4", [0, 10, false]],
    ["bytes=4-2", [0, 10, false]],
    ["bytes=-", [0, 10, false]],
    ["lines=1-2", [0, 10, false]],
    ["bytes=a-b", [0, 10, false]],
    [null, [0, 10, false]],
    ["bytes=10-10", null],
    ["bytes=-0", null],
    ["bytes=99999999999999999999-", null],
  ])("parses %s", (header, expected) => {
    if (expected === null) return expect(() => rangeOf(header, 10)).toThrow(ServiceError);
    const { offset, length, partial } = rangeOf(header, 10);
    expect([offset, length, partial]).toEqual(expected);
  });

  it("closes the file at the end, on cancel, and when the caller disconnects", async () => {
    writeFileSync(room.path("f"), "x".repeat(1_000_000));
    const before = openFiles();
    await bytesOf(await room.call("file_get", { path: "f" }));
    await (await room.call("file_get", { path: "f" })).bytes?.stream.cancel();
    const caller = new AbortController();
    const response = await room.call("file_get", { path: "f" }, {}, caller.signal);
    const reader = response.bytes?.stream.getReader();
    await reader?.read();
    caller.abort();
    await expect(reader?.read()).rejects.toThrow();
    await room.codeOf("file_get", { path: "f" }, { range: "bytes=2000000-" });
    await room.call("file_get", { path: "f" }, { if_none_match: "*" });
    await expect.poll(openFiles).toBe(before);
  });

  it("fails a stream whose file was truncated", async () => {
    writeFileSync(room.path("f"), "x".repeat(1_000_000));
    const got = await room.call("file_get", { path: "f" });
    const reader = got.bytes?.stream.getReader();
    await reader?.read();
    truncateSync(room.path("f"), 10);
    await expect(reader?.read()).rejects.toThrow("shorter");
  });
});

function openFiles(): number {
  return readdirSync("/proc/self/fd").length;
}
