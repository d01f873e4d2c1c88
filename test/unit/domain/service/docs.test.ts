/** The page of an interface in which every text is an attack: none of it becomes HTML, or closes a shell's quotes. */
import { expect, test } from "vitest";
import { renderDocs } from "../../../../daemon/domain/service/docs/page.tsx";

const EVIL = `"><script>alert('x')</script>&amp;`;

test("any content of the document is text", () => {
  const schema = {
    type: "object",
    description: EVIL,
    required: [EVIL],
    properties: { [EVIL]: { type: "string", description: EVIL, pattern: EVIL, enum: [EVIL] } },
  };
  const content = { "application/json": { schema, example: { [EVIL]: EVIL } } };
  const problem = { schema: {}, examples: { [EVIL]: {} } };
  const header = { description: EVIL, schema: { type: EVIL }, example: EVIL };
  const html = renderDocs(
    {
      info: { title: EVIL, version: EVIL, description: EVIL },
      paths: {
        [`/v1/${EVIL}/{name}`]: {
          [EVIL]: {
            operationId: EVIL,
            summary: EVIL,
            description: EVIL,
            tags: [EVIL],
            "x-scope": EVIL,
            parameters: [
              { name: "name", in: "path", required: true, description: EVIL, schema: { type: EVIL }, example: EVIL },
              { name: EVIL, in: "query", required: false, schema: { format: EVIL } },
              { $ref: `#/components/parameters/${EVIL}` },
            ],
            requestBody: { required: true, content },
            responses: {
              200: { description: EVIL, headers: { [EVIL]: { $ref: `#/components/headers/${EVIL}` } }, content },
              404: { description: EVIL, headers: {}, content: { "application/problem+json": problem } },
            },
          },
        },
      },
      components: {
        parameters: { [EVIL]: header },
        headers: { [EVIL]: header },
        examples: { [EVIL]: { summary: EVIL, value: { status: 404, retryable: false, hint: EVIL } } },
      },
    },
    EVIL,
  );
  expect(html.split("&lt;script>").length).toBeGreaterThan(20);
  // The page's own.
  expect(html.toLowerCase().split("<script").length).toBe(2);
  // Only elements of the page itself.
  expect(new Set([...html.matchAll(/<([a-z]\w*)/g)].map((match) => match[1]))).toEqual(
    new Set(
      "html head meta title style script body nav div label input button h1 h2 h3 h4 ul ol li a em main small p code section span table thead tr th tbody td br pre details summary".split(
        " ",
      ),
    ),
  );
});

test("a quote in an example does not end the shell argument", () => {
  const html = renderDocs(
    {
      info: { title: "t", version: "1", description: "d" },
      paths: {
        "/v1/x": {
          post: {
            operationId: "x",
            summary: "s",
            tags: ["t"],
            parameters: [],
            requestBody: { required: true, content: { "application/json": { schema: {}, example: { a: "it's" } } } },
            responses: {},
          },
        },
      },
      components: { parameters: {}, headers: {}, examples: {} },
    },
    EVIL,
  );
  expect(html).toContain(`-d '{&quot;a&quot;:&quot;it'\\''s&quot;}'`);
});
