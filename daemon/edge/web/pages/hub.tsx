/** The page that the hub runs in. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import type { Boot } from "../../../../shared/hub/boot.ts";
import { VERSION } from "../../../../shared/version.ts";
import { Empty } from "../../../web/components/static.tsx";
import type { Page } from "../layout.tsx";
import { whoOf } from "./account.tsx";

interface HubOptions {
  url: string;
  nonce: string;
  /** Whether the service has several. */
  hasHosts: boolean;
}

export function hubPage(account: AccountRecord, path: string, { url, nonce, hasHosts }: HubOptions): Page {
  const who = whoOf(account);
  const boot: Boot = {
    url,
    version: VERSION,
    user: { name: account.name, email: account.email, role: account.role },
    org: { org_id: account.org_id, name: who.org },
    has_hosts: hasHosts,
    sees_hosts: hasHosts && who.isKeeper,
    style_nonce: nonce,
  };
  return {
    title: "Home",
    // A room's pages are below the rail's entry.
    at: `/${path.split("/")[1]}`,
    who,
    hub: { boot, nonce },
    body: (
      <noscript>
        <Empty title="This page shows live activity and needs JavaScript.">
          <p>
            Your <a href="/account">account</a> and the <a href="/prompts">prompts</a> work without it. In a shell,{" "}
            <code>roomd top</code> and <code>roomd audit</code> show the same information.
          </p>
        </Empty>
      </noscript>
    ),
  };
}
