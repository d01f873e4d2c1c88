import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { RoomFixture, sha256, streamOf } from "../room-fixture.ts";

let room: RoomFixture;
beforeEach(() => {
  room = new RoomFixture();
});
afterEach(() => room[Symbol.dispose]());

const etagOf = async (path: string) => {
  const { bytes } = await room.call("file_get", { path });
  await bytes?.stream.cancel();
  return bytes?.etag ?? "";
};

describe("file_put", () => {
  it("streams a body to its file, then replaces it", async () => {
    const body = streamOf("one,", "two,", new Uint8Array(1_000_000));
    const put = await room.call("file_put", { path: "a/b", mode: "600" }, { body });
    const whole = Buffer.concat([Buffer.from("one,two,"), Buffer.alloc(1_000_000)]);
    expect(put.outcome).toBe("created");
    expect(put.body).toMatchObject({ path: "/a/b", size_bytes: whole.length, sha256: sha256(whole), mode: "0600" });
    expect(put.call.audit.details).toEqual({ path: "/a/b", size_bytes: whole.length, sha256: sha256(whole) });
    expect(readFileSync(room.path("a/b")).equals(whole)).toBe(true);
    expect((await room.call("file_put", { path: "a/b" }, { body: null })).outcome).toBe("replaced");
    expect(readFileSync(room.path("a/b"), "utf8")).toBe("");
    expect(await room.codeOf("file_put", { path: "a/b", overwrite: false }, { body: streamOf("x") })).toBe(
      "already_exists",
    );
    expect(await room.codeOf("file_put", { path: "a" }, { body: streamOf("x") })).toBe("is_directory");
    expect(readdirSync(room.path("a"))).toEqual(["b"]);
  });

  it("reads no more of the body than it has written", async () => {
    let taken = 0;
    let written = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => {
          // The reader requests the next chunk only once the previous one is in the file.
          const [temporary] = readdirSync(room.directory);
          written = temporary ? readFileSync(room.path(temporary)).length : 0;
          expect(written).toBe(taken * 100_000);
          if (taken++ < 10) controller.enqueue(new Uint8Array(100_000));
          else controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    expect((await room.call("file_put", { path: "f" }, { body })).body.size_bytes).toBe(1_000_000);
    expect(written).toBe(1_000_000);
  });

  it("honours If-Match and If-None-Match, also if the file changes during the upload", async () => {
    expect(await room.codeOf("file_put", { path: "f" }, { if_match: "*" })).toBe("precondition_failed");
    expect(await room.codeOf("file_put", { path: "f" }, { if_none_match: "*", body: streamOf("1") })).toBe("done");
    expect(await room.codeOf("file_put", { path: "f" }, { if_none_match: "*" })).toBe("precondition_failed");
    const etag = await etagOf("f");
    expect(await room.codeOf("file_put", { path: "f" }, { if_match: '"other"' })).toBe("precondition_failed");
    expect(await room.codeOf("file_put", { path: "f" }, { if_match: etag, body: streamOf("2") })).toBe("done");
    expect(await room.codeOf("file_put", { path: "f" }, { if_match: etag, body: streamOf("3") })).toBe(
      "precondition_failed",
    );

    const current = await etagOf("f");
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        writeFileSync(room.path("f"), "changed by a guest");
        controller.close();
      },
    });
    expect(await room.codeOf("file_put", { path: "f" }, { if_match: current, body })).toBe("precondition_failed");
    expect(readFileSync(room.path("f"), "utf8")).toBe("changed by a guest");
    expect(readdirSync(room.directory)).toEqual(["f"]);
  });

  it("leaves no data of a failed body or of a disconnected caller", async () => {
    writeFileSync(room.path("f"), "old");
    const failing = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        controller.enqueue(new Uint8Array(1000));
        controller.error(new Error("the connection was closed"));
      },
    });
    expect(await room.codeOf("file_put", { path: "f" }, { body: failing })).toBe("invalid_body");

    const caller = new AbortController();
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        controller.enqueue(new Uint8Array(1000));
        await Bun.sleep(5);
      },
      cancel: () => {
        cancelled = true;
      },
    });
    const put = room.codeOf("file_put", { path: "f" }, { body: endless }, caller.signal);
    await expect.poll(() => readdirSync(room.directory).length).toBe(2);
    caller.abort();
    expect(await put).toBe("invalid_body");
    expect(cancelled).toBe(true);

    const silent = new AbortController();
    const never = new ReadableStream<Uint8Array>({ pull: () => new Promise(() => {}) });
    const waiting = room.codeOf("file_put", { path: "f" }, { body: never }, silent.signal);
    await expect.poll(() => readdirSync(room.directory).length).toBe(2);
    silent.abort();
    expect(await waiting).toBe("invalid_body");

    expect(readdirSync(room.directory)).toEqual(["f"]);
    expect(readFileSync(room.path("f"), "utf8")).toBe("old");
  });
});
