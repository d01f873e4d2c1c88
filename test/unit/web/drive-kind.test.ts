/** Files that a browser may render: raster images by their first bytes, and nothing executable. */
import { expect, test } from "vitest";
import { kindOf } from "../../../daemon/web/room/drive/kind.ts";

const bytes = (text: string) => new Uint8Array(Buffer.from(text, "latin1"));

test("pictures are recognized by their bytes, under any name", () => {
  expect(kindOf(bytes("\x89PNG\r\n\x1a\n...."), null)).toEqual({ is: "picture", type: "image/png" });
  expect(kindOf(bytes("GIF89a"), "GIF89a")).toEqual({ is: "picture", type: "image/gif" });
  expect(kindOf(bytes("RIFF\x00\x00\x00\x00WEBP"), null)).toEqual({ is: "picture", type: "image/webp" });
});

test("executable formats are text, and data that is not UTF-8 is bytes", () => {
  for (const text of ["<svg onload=alert(1)>", "<!doctype html><script>", "%PDF-1.7", ""]) {
    expect(kindOf(bytes(text), text)).toEqual({ is: "text" });
  }
  expect(kindOf(bytes("\x7fELF"), null)).toEqual({ is: "bytes" });
  expect(kindOf(bytes("a\x00b"), "a\u0000b")).toEqual({ is: "bytes" });
});
