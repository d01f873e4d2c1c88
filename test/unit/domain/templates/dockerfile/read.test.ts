/** Dockerfiles: the supported instructions, and refusal of the rest with its line. */
import { describe, expect, test } from "vitest";
import { planDockerfile } from "../../../../../daemon/domain/templates/dockerfile/plan.ts";
import { readDockerfile } from "../../../../../daemon/domain/templates/dockerfile/read.ts";

const IMAGE = {
  defaults: { env: { PATH: "/bin", LANG: "C" }, cwd: null, user: null, start: ["/entry", "serve"] },
  entrypoint: ["/entry"],
};
const plan = (text: string, args = {}) => planDockerfile(readDockerfile(text, args), IMAGE);
/** Of lines after a FROM, which is the first. */
const after = (text: string, args = {}) => plan(`FROM base.example/app\n${text}`, args);

describe("an image", () => {
  test.each([
    ["FROM python:3.13-slim", {}, "docker://python:3.13-slim"],
    [
      "# syntax=docker/dockerfile:1\n# one\n\nfrom a.example:5000/b@sha256:00 as c",
      {},
      "docker://a.example:5000/b@sha256:00",
    ],
    ["ARG V=1\nFROM a:$V", {}, "docker://a:1"],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a Dockerfile's
    ["ARG V=1\nFROM a:${V}-${W:-x}", { V: "2", W: "y" }, "docker://a:2-x"],
    ["FROM --platform=linux/amd64 a", {}, "docker://a"],
    ["FROM oci:/srv/layout:image", {}, "oci:/srv/layout:image"],
  ])("%j", (text, args, from) => {
    expect(readDockerfile(text, args).from).toBe(from);
  });
});

test.each([
  ["FROM default", "default"],
  ["ARG BASE=docker\nFROM $BASE AS app", "docker"],
  ["FROM default:1", null],
  ["FROM docker.io/library/default", null],
  ["FROM default@sha256:00", null],
  ["FROM oci:/srv/default", null],
])("%j names a template, or an image alone: %s", (text, name) => {
  expect(readDockerfile(text).name).toBe(name);
});

test("nested variables are limited in depth, and lines in number", () => {
  const nested = (levels: number) => `${"${A:-".repeat(levels)}x${"}".repeat(levels)}`;
  expect(readDockerfile(`ARG B=${nested(10)}\nFROM a:$B`).from).toBe("docker://a:x");
  for (const levels of [40, 30_000]) {
    expect(() => plan(`FROM ${nested(levels)}`)).toThrow(/line 1: FROM .*\b16\b/);
    expect(() => after(`WORKDIR ${nested(levels)}`)).toThrow(/line 2: WORKDIR .*\b16\b/);
  }
  expect(() => plan(`FROM a\n${"RUN a\n".repeat(20_000)}`)).toThrow(/\b10000 lines\b/);
});

test("RUN is a line of shell or a program with arguments, with the environment so far", () => {
  const { steps } = after(
    [
      "ENV A=1",
      "RUN echo a \\",
      "  # of nobody",
      "  && echo $A",
      "ARG B=2",
      "ENV A=3 PATH=/opt/bin:$PATH",
      'RUN ["prog", "b c", "$A"]',
      'SHELL ["/bin/bash", "-ec"]',
      "USER app:staff",
      "WORKDIR /srv",
      "WORKDIR sub",
      "RUN true",
    ].join("\n"),
  );
  expect(steps).toMatchObject([
    { argv: ["/bin/sh", "-c", "echo a   && echo $A"], env: { A: "1", PATH: "/bin" }, cwd: "/", user: "root" },
    { argv: ["prog", "b c", "$A"], env: { A: "3", B: "2", PATH: "/opt/bin:/bin" } },
    { kind: "directory", path: "/srv" },
    { kind: "directory", path: "/srv/sub" },
    { argv: ["/bin/bash", "-ec", "true"], cwd: "/srv/sub", user: "app:staff" },
  ]);
  expect(steps[0]).not.toHaveProperty("env.B");
});

test("commands start from the last setting; an own entry point drops the image's arguments", () => {
  const text = "ENV A=\"x y\" B='$A' C=$A\\ z\nENV OLD the rest\nWORKDIR /srv\nUSER 1000";
  expect(after(text).defaults).toEqual({
    env: { PATH: "/bin", LANG: "C", A: "x y", B: "$A", C: " z", OLD: "the rest" },
    ...{ cwd: "/srv", user: "1000", start: ["/entry", "serve"] },
  });
  expect(after('CMD ["other"]').defaults.start).toEqual(["/entry", "other"]);
  expect(after('ENTRYPOINT ["own"]').defaults.start).toEqual(["own"]);
  expect(after('ENTRYPOINT own it\nCMD ["a"]').defaults.start).toEqual(["/bin/sh", "-c", "own it", "a"]);
});

test("names of object properties are ordinary names, and a quoted word keeps its spaces", () => {
  const { steps, defaults } = after(
    "ARG constructor\nENV A=$toString OLD=1\nENV B 'c  d' e\nWORKDIR '/my dir'\nRUN echo $((1<<2))",
  );
  expect(defaults).toMatchObject({ env: { A: "", OLD: "1", B: "c  d e" }, cwd: "/my dir" });
  expect(steps[1]).not.toHaveProperty("env.constructor");
});

test("ARG: from the build, from its default, from before FROM", () => {
  const text = "ARG V=before\nFROM a\nARG V\nARG W=own\nARG X=own\nRUN true";
  const [step] = plan(text, { X: "given", Z: "of nobody" }).steps;
  expect(step).toMatchObject({ env: { V: "before", W: "own", X: "given", PATH: "/bin", LANG: "C" } });
  expect(step).not.toHaveProperty("env.Z");
});

test("COPY: its target and its owner", () => {
  const { steps } = after(
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a Dockerfile's
    'WORKDIR /srv\nCOPY --chown=app --chmod=640 a b* dir/\nCOPY ["a b", "/c d"]\nCOPY . .\nADD a$X /x/\nCOPY --link a ${D:-e}',
  );
  expect(steps.slice(1)).toMatchObject([
    { sources: ["a", "b*"], to: "/srv/dir/", chown: "app", mode: 0o640 },
    { sources: ["a b"], to: "/c d", chown: null, mode: null },
    { sources: ["."], to: "/srv/" },
    { sources: ["a"], to: "/x/" },
    { sources: ["a"], to: "/srv/e" },
  ]);
});

test.each([
  ["FROM a\nRUN --mount=type=cache,target=/x true", /line 2: RUN --mount .*--secret/],
  ["FROM a\nRUN --network=none true", /line 2: RUN --network/],
  ["FROM a\n\nRUN <<EOF\ntrue\nEOF", /line 3: RUN /],
  ["FROM a AS b\nFROM c\nCOPY --from=b /x /y", /line 2: FROM .*line 3: COPY --from/],
  ["FROM a\nADD https://a.example/x /y", /line 2: ADD /],
  ["FROM a\nADD x.tar.gz /y", /line 2: ADD /],
  ["FROM a\nONBUILD RUN true", /line 2: ONBUILD/],
  ["FROM a\nFOO", /line 2: FOO/],
  ["FROM --platform=linux/arm64 a", /linux\/amd64/],
  ["FROM scratch", /scratch/],
  ["FROM $NONE", /line 1: FROM/],
  ["RUN true\nFROM a", /line 1: RUN/],
  ["# nothing", /FROM/],
  ['FROM a\nENV A="b', /line 2: ENV .*"/],
  ["FROM a\nENV =b", /line 2: ENV .*=b/],
  ["FROM a\nUSER a b", /line 2: USER/],
  ["FROM a\nCOPY a", /line 2: COPY/],
  ["FROM a\nCOPY --chmod=u+x a b", /line 2: COPY --chmod/],
  ["FROM a\nCOPY --chown=-R a b", /line 2: COPY --chown/],
  ["FROM a\nSHELL bash", /line 2: SHELL/],
  [`FROM a\nRUN ${"x".repeat(262_144)}`, /\b262144\b/],
])("an unsupported instruction is rejected with its line and a remedy (%#)", (text, expected) => {
  expect(() => plan(text)).toThrow(expected);
  const hint = expect.stringContaining("docker save");
  expect(() => plan(text)).toThrow(
    expect.objectContaining({ code: "validation_failed", options: expect.objectContaining({ hint }) }),
  );
});

test("variables that contain each other many times are rejected before they expand", () => {
  const doubled = (keyword: string) => Array.from({ length: 40 }, () => `${keyword} A=$A$A`).join("\n");
  expect(() => after(`ENV A=aaaaaaaa\n${doubled("ENV")}`)).toThrow(/\b65536\b/);
  expect(() => plan(`ARG A=aaaaaaaa\n${doubled("ARG")}\nFROM a`)).toThrow(/\b65536\b/);
  const many = Array.from({ length: 20 }, (_, n) => `ENV B${n}=${"b".repeat(60_000)}`);
  expect(() => after(many.slice(0, 4).join("\n"))).not.toThrow();
  const copies = Array.from({ length: 20 }, (_, n) => `ENV C${n}=$B0`);
  expect(() => after([many[0], ...copies].join("\n"))).toThrow(/line 10: ENV .*\b524288\b/);
});

test.each([
  ["$A", "$A"],
  ["$A", "b=$A"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a Dockerfile's
  ["${A}", "${A:-x}"],
])("variables expand to a MiB in total, however they are named: %s, %s", (one, other) => {
  const long = "x".repeat(60_000);
  const many = `${one} ${other} `.repeat(20_000).slice(0, 190_000);
  expect(() => plan(`ARG A=${long}\nARG ${many}\nFROM a`)).toThrow(/line 2: ARG .*\b\d+ characters/);
  const lines = `ARG B=$A\n`.repeat(1000);
  expect(() => plan(`ARG A=${long}\n${lines}FROM a`)).toThrow(/ARG .*\b1048576\b/);
  expect(() => after(`ENV A=${long}\n${"USER a$A\n".repeat(100)}`)).toThrow(/USER .*\b1048576\b/);
});
