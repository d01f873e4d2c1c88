/** How images are named. */
import { expect, test } from "vitest";
import {
  localImage,
  REFERENCE_PATTERN,
  registryOf,
  repositoryOf,
} from "../../../../../daemon/domain/templates/image/reference.ts";

const isOne = (reference: string) => new RegExp(REFERENCE_PATTERN).test(reference);

test.each([
  "docker://registry.example.com/team/app:1.2",
  `docker://127.0.0.1:5000/app@sha256:${"0".repeat(64)}`,
  "oci:/srv/images/app:1",
  "docker-archive:/srv/with space.tar",
])("%s is valid", (reference) => {
  expect(isOne(reference)).toBe(true);
});

test.each([
  "",
  "debian:trixie",
  "--help",
  "docker://--tls-verify=false",
  "docker://a b",
  "oci:relative",
  "dir:/etc",
  "oci-archive:/srv/app.tar",
  "docker-daemon:app:latest",
  "docker-archive:/a\nb",
  `docker://${"a".repeat(513)}`,
])("%s is invalid", (reference) => {
  expect(isOne(reference)).toBe(false);
});

test("the path of a file is distinguished from an image name within it", () => {
  expect(localImage("docker-archive:/srv/app.tar:app:1.2")).toEqual({
    transport: "docker-archive",
    path: "/srv/app.tar",
    name: ":app:1.2",
  });
  expect(localImage("oci:/srv/app")).toEqual({ transport: "oci", path: "/srv/app", name: "" });
  expect(localImage("docker://example.com/app")).toBeNull();
});

test.each([
  ["docker://example.com:5000/app", "docker://example.com:5000/app"],
  ["docker://example.com:5000/app:1", "docker://example.com:5000/app"],
  ["docker://example.com/app:1@sha256:00", "docker://example.com/app"],
])("the repository of %s", (reference, repository) => {
  expect(repositoryOf(reference)).toBe(repository);
});

test.each([
  ["docker://registry.example.com/team/app:1", "registry.example.com"],
  ["docker://127.0.0.1:5000/app", "127.0.0.1:5000"],
  ["docker://localhost/app", "localhost"],
  ["docker://python:3.13", null],
  ["docker://team/app", null],
  ["oci:/srv/a.b/c", null],
])("the registry of %s", (reference, registry) => {
  expect(registryOf(reference)).toBe(registry);
});
