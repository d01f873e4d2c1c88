/** Serves the page of /docs: open to all, the same for all, and made once. */
import { type DocsPage, docsPage } from "../../domain/service/docs/page.ts";
import { type HeaderFields, usualHeaders } from "./reply.ts";

export const DOCS_PATH = "/docs";

/** Answers to a request of this id; `host` is the name of this one, `url` where clients find it. */
export function makeDocsAnswer(host: string, url: string): (requestId: string) => Response {
  let page: DocsPage | undefined;
  return (requestId) => {
    page ??= docsPage(url);
    const headers: HeaderFields = {
      ...usualHeaders(requestId, host),
      "Content-Type": "text/html; charset=utf-8",
      "Content-Security-Policy": page.policy,
      "X-Content-Type-Options": "nosniff",
      "Referrer-Policy": "no-referrer",
    };
    return new Response(page.html, { headers });
  };
}
