import { describe, expect, it } from "vitest";
import { guestPath, parsePath, pathRule, shownPath } from "../../../../daemon/domain/drive/path.ts";
import { HERE } from "../../../../daemon/host/files/raw-path.ts";

describe("paths of the drive", () => {
  it.each(["x", "/x", "/mnt/drive/x", "mnt/drive/x", "//x", "/./x", "x/", "/mnt//drive/./x/"])(
    "%s is the file /x",
    (text) => {
      expect(shownPath(parsePath(text))).toBe("/x");
      expect(guestPath(parsePath(text))).toBe("/mnt/drive/x");
    },
  );

  it.each(["/", ".", "/mnt/drive", "/mnt/drive/", "."])("%s is the drive itself", (text) => {
    expect(parsePath(text)).toBe(HERE);
    expect(shownPath(parsePath(text))).toBe("/");
    expect(guestPath(parsePath(text))).toBe("/mnt/drive");
  });

  it.each(["/mnt/driveway", "/mnt/drives/x", "/mnt/x", "..x", "x..", "a b", "a\nb", "é/ü", "-", "*"])(
    "%j is unchanged",
    (text) => {
      expect(shownPath(parsePath(text))).toBe(text.startsWith("/") ? text : `/${text}`);
    },
  );

  it("strips the mount once, and shows the rest in a form that is accepted again", () => {
    const inner = parsePath("/mnt/drive/mnt/drive/x");
    expect(inner).toBe("mnt/drive/x");
    expect(parsePath(shownPath(inner))).toBe(inner);
    expect(guestPath(inner)).toBe("/mnt/drive/mnt/drive/x");
  });

  it.each([
    ["", "empty"],
    ["..", "a .."],
    ["a/../b", "a .. inside"],
    ["/mnt/drive/../x", "a .. after the mount"],
    ["a\0b", "NUL"],
    [`/${"a/".repeat(2048)}b`, "over 4096 bytes"],
    ["a".repeat(256), "a name over 255 bytes"],
    ["é".repeat(128), "a name over 255 bytes in UTF-8"],
    ["a\ud800b", "half a surrogate pair"],
    [`a/.roomd-${"0".repeat(32)}`, "a temporary name"],
  ])("%j is rejected: %s", (text) => {
    expect(() => parsePath(text)).toThrow(expect.objectContaining({ code: "invalid_path" }));
    expect(pathRule("path", text)).toEqual([expect.objectContaining({ field: "path", code: "invalid_path" })]);
  });

  it("accepts the longest names", () => {
    expect(pathRule("path", "a".repeat(255))).toEqual([]);
    expect(pathRule("path", "ab/".repeat(1365))).toEqual([]);
    expect(pathRule("path", undefined)).toEqual([]);
  });
});
