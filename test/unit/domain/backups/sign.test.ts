/** Requests are signed as the protocol's own examples are: docs.aws.amazon.com, "Signature Calculations for the Authorization Header". */
import { expect, test } from "vitest";
import { encoded, sha256, signed } from "../../../../daemon/domain/backups/sign.ts";

const KEY = {
  key_id: "AKIAIOSFODNN7EXAMPLE",
  secret: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
};
const HOST = "https://examplebucket.s3.amazonaws.com";
const AT = new Date("2013-05-24T00:00:00Z");

const signature = (method: string, path: string, headers: Record<string, string> = {}, body = "") => {
  const request = { method, url: new URL(path, HOST), headers, bodySha256: sha256(body) };
  return signed(KEY, request, AT).authorization?.replace(/.*Signature=/, "");
};

test("a partial GET of an object", () => {
  expect(signature("GET", "/test.txt", { Range: "bytes=0-9" })).toBe(
    "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  );
});

test("a PUT of an object", () => {
  const headers = { Date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" };
  expect(signature("PUT", `/${encoded("test$file.text")}`, headers, "Welcome to Amazon S3.")).toBe(
    "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  );
});

test("a list, and a query parameter without a value", () => {
  expect(signature("GET", "/?max-keys=2&prefix=J")).toBe(
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  );
  expect(signature("GET", "/?lifecycle")).toBe("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
});
