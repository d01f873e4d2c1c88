/** The list of an organization's sandboxes put together of several hosts' pages. */
import { expect, test } from "vitest";
import { listOfSandboxes } from "../../../../daemon/edge/scatter-gather/sandboxes.ts";

const page = (host: string, ids: string[], next_cursor: string | null = null) => ({
  host,
  chain: host,
  body: { items: ids.map((sandbox_id) => ({ sandbox_id })), next_cursor },
});

function merged(limit: number, pages: ReturnType<typeof page>[], silent: string[] = []) {
  const about = { caller: { org_id: "org_1" }, input: { limit }, silent, known: [], ownerOf: () => null };
  const [own, ...others] = pages;
  const answer = listOfSandboxes.merge(own as never, others as never, about as never);
  return { ...answer, items: answer.items.map(({ sandbox_id }) => sandbox_id) };
}

test("it is in one order, with each sandbox once", () => {
  expect(merged(9, [page("b", ["sbx_2", "sbx_4"]), page("a", ["sbx_1", "sbx_4"])])).toEqual({
    items: ["sbx_1", "sbx_2", "sbx_4"],
    next_cursor: null,
  });
});

test("it continues after its page, whichever host has more", () => {
  expect(merged(2, [page("b", ["sbx_2", "sbx_4"]), page("a", ["sbx_1"])]).items).toEqual(["sbx_1", "sbx_2"]);
  expect(merged(2, [page("b", ["sbx_2", "sbx_4"]), page("a", ["sbx_1"])]).next_cursor).not.toBeNull();
  expect(merged(2, [page("b", ["sbx_1", "sbx_2"], "more"), page("a", [])]).next_cursor).not.toBeNull();
});

test("it names hosts that did not respond", () => {
  expect(merged(2, [page("b", [])], ["a"]).warnings).toEqual([expect.stringContaining(" a ")]);
});
