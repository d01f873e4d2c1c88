/** Names of keys, and characters, as keysyms. */
import { describe, expect, test } from "vitest";
import { chordsOf, chordsOfText, keysymOf } from "../../../../daemon/domain/screen/keysyms.ts";

describe("characters", () => {
  test.each([
    ["a", 0x61],
    ["A", 0x41],
    [" ", 0x20],
    ["é", 0xe9],
    ["€", 0x010020ac],
    ["ж", 0x01000436],
    ["漢", 0x01006f22],
    ["😀", 0x0101f600],
    ["\n", 0xff0d],
    ["\t", 0xff09],
  ])("%j is %i", (character, keysym) => {
    expect(keysymOf(character)).toBe(keysym);
  });

  test("that no key types have no keysym", () => {
    for (const character of ["\0", "\x1b", "\x7f", "\x9b", "\ud800"]) expect(keysymOf(character)).toBeNull();
    expect(chordsOfText("a\x1b[2J")).toEqual({ bad: "U+001B" });
  });

  test("of a text are one key each, including the end of a line", () => {
    expect(chordsOfText("a😀\r\nB")).toEqual({ chords: [[0x61], [0x0101f600], [0xff0d], [0xffe1, 0x42]] });
  });
});

describe("names", () => {
  test.each<[string, number[][]]>([
    ["Return", [[0xff0d]]],
    ["ctrl+c", [[0xffe3, 0x63]]],
    ["ctrl+shift+Tab", [[0xffe3, 0xffe1, 0xff09]]],
    ["ctrl+C", [[0xffe3, 0xffe1, 0x43]]],
    ["shift+C", [[0xffe1, 0x43]]],
    ["super", [[0xffeb]]],
    ["Page_Down", [[0xff56]]],
    ["pagedown", [[0xff56]]],
    ["F1", [[0xffbe]]],
    ["F35", [[0xffe0]]],
    ["KP_9", [[0xffb9]]],
    ["alt+F4", [[0xffe9, 0xffc1]]],
    ["+", [[0x2b]]],
    ["ctrl++", [[0xffe3, 0x2b]]],
    ["ctrl+plus", [[0xffe3, 0x2b]]],
    ["ctrl+-", [[0xffe3, 0x2d]]],
    ["ctrl+a  BackSpace", [[0xffe3, 0x61], [0xff08]]],
    [" ", [[0x20]]],
    ["é", [[0xe9]]],
  ])("%j", (text, chords) => {
    expect(chordsOf(text)).toEqual({ chords });
  });

  test.each([
    ["", ""],
    ["  ", "  "],
    ["hyperspace", "hyperspace"],
    ["ctrl+", ""],
    ["ctrl+nokey", "nokey"],
    ["constructor", "constructor"],
    ["a+b+c+d+e+f+g+h+i", "a+b+c+d+e+f+g+h+i"],
    ["\x1b", "\x1b"],
  ])("%j is not a valid key", (text, bad) => {
    expect(chordsOf(text)).toEqual({ bad });
  });

  test("are limited in number", () => {
    expect(chordsOf("a ".repeat(64))).toHaveProperty("chords.length", 64);
    expect(chordsOf("a ".repeat(65))).toHaveProperty("bad");
  });
});
