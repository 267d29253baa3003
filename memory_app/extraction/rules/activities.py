# ruff: noqa: E501 (a pattern stays in one piece)
"""What people did, plan and do again and again: rules for events, plans and habits in English."""

from __future__ import annotations

from memory_app.extraction.rules import words
from memory_app.extraction.rules.patterns import OBJECT, Rule, When
from memory_app.language.calendar import WEEKDAYS

_LASTING = "|".join(words.PAST_LASTING)
_DATED = "|".join(words.PAST_DATED)
_PARTICLES = words.PAST_PARTICLES
_EMPTY_PLAN = (
    "be|try|bed|sleep|have|need|say|ask|tell|check|see|let|do|know|think|keep|make sure|ensure|start thinking|take a look|look|thank|hear|share|"
    "give|give you|show|stop|remember|talk|admit|add|point|mention|use|put|get (?:some|back|it|to|going|ready)|go (?:ahead|back|now|for it|"
    "do|get|with)|miss|love|stay|feel|help you|support you|continue|find out|catch up|reach out|believe|work on it|work hard"
)
_PLAN = rf"(?P<object>(?!(?:{_EMPTY_PLAN})\b).+)"
_FREQUENT = "always|usually|often|sometimes|regularly|normally|typically|generally|rarely|occasionally"
_NOT_HABIT = (
    "am|is|was|have|had|do|did|will|would|can|cannot|could|should|may|might|must|think|feel|want|need|hope|wish|guess|know|"
    "say|mean|love|like|enjoy|hate|believe|find|get|keep|see|try|seem|make|wonder|forget|remember|look|thought|felt|wanted|"
    "knew|hoped|found|dreamed|tell|appreciate|admire|miss|understand|agree|told|used|wanted|loved|liked|enjoyed|never|ask|end"
)
_VERB = rf"(?P<verb>(?!(?:{_NOT_HABIT}|{_DATED}|{_LASTING})\b)[a-z]{{2,12}}(?<!ed))"
_WEEKDAY = "|".join(WEEKDAYS).lower()
_TIMES = (
    r"(?P<times>(?:every|each) (?:single )?(?:other )?(?:morning|day|night|evening|afternoon|week|weekend|month|year|summer|winter|"
    rf"spring|autumn|fall|{_WEEKDAY}|two weeks|few days)(?: (?:morning|night|evening|afternoon))?|"
    r"(?:once|twice|three times|four times|five times|a few times|\d times) (?:a|per|every) (?:day|week|month|year)|daily|weekly|"
    rf"on (?:(?:{_WEEKDAY})s|weekends|weekdays|weeknights)|"
    r"in the (?:mornings?|evenings?)|at night|before bed|before work|after work)"
)
_PURSUIT = (
    "working on|training for|writing|reading|building|practicing|practising|rehearsing for|preparing for|saving up for|saving for|"
    "taking|volunteering|running|renovating|restoring|teaching|coaching|planning|organizing|organising|applying for|applying to|studying for|"
    "looking for|searching for|painting|playing|watching|researching|developing|designing|recording|knitting|expecting|attending|doing|"
    "looking into|researching|hosting|running for|putting together|setting up|creating|filming|editing|composing|drawing|sketching|"
    "sewing|crocheting|offering|participating in|brainstorming|wrapping up|trying out|checking out|experimenting with|exploring|"
    "revising|perfecting|promoting|growing|raising|collecting|remodeling|remodelling|redecorating|mentoring|tutoring|leading|"
    "blogging about|learning about|networking with|practicing for|practising for|competing in|collaborating with|recovering from|"
    "turning(?= (?:my|our) )|carrying on|prepping for|living|building up|getting into|getting back into|considering|enjoying|focused on|focusing on"
)
_NOT_AHEAD = (
    "going|feeling|being|having|looking|thinking|hoping|trying|wondering|doing|loving|getting|keeping|staying|missing|"
    "waiting|talking|writing to|putting|asking|saying|telling|coming along|dying|kidding|joking|remembering|freaking"
)
_NOT_PURSUIT = r"(?!(?:my part|my true self|my best life|it|that|this|well|good|great|ok|okay|fine|better|care|some time|time|a break|my best|alright|for|forward|options|the positive|positivity)\b)"

_KIN = "|".join(sorted({*words.KIN, *words.PLURAL_KIN, *words.PETS}))
_DOES = (
    "teach|coach|mentor|volunteer|paint|draw|bake|knit|sew|hike|dance|sing|practice|practise|meditate|cycle|jog|surf|ski|climb|"
    "sail|breed|grow|blog|stream|compose|restore|rehearse|foster|babysit"
)

PLANS = (
    Rule(
        "am",
        r"am (?:really |so )?(?:thinking|dreaming) (?:about|of) (?P<object>\w+ing\b.+)",
        relation="considers",
        says="is thinking about {object}",
        confidence=0.7,
        when=When.PLAN,
    ),
    Rule(
        "am",
        rf"am (?:planning|hoping|about|preparing|aiming|determined) (?:on |to ){_PLAN}",
        relation="plans_to",
        says="plans to {object}",
        when=When.PLAN,
    ),
    Rule(
        "am",
        r"am going (?:back )?to (?P<object>(?:an? |the |my |see my |see a |our )?(?-i:[A-Z]).*|(?:an? |the |my )(?!bed|store|shop|bathroom|gym\b).+)",
        relation="plans_to",
        says="is going to {object}",
        value="go to {object}",
        when=When.PLAN,
        needs_date=True,
    ),
    Rule(
        "am",
        rf"am (?:also )?going to {_PLAN}",
        relation="plans_to",
        says="is going to {object}",
        when=When.PLAN,
    ),
    Rule(
        "am",
        r"am (?:finally |also )?(?P<object>(?:moving to|starting (?:a|my)|opening (?:a|my)|launching (?:a|my)|getting married|getting divorced|adopting|applying to|applying for) ?.*)",
        relation="plans_to",
        says="is {object}",
        when=When.PLAN,
    ),
    Rule(
        "will|shall",
        rf"(?:will|shall) {_PLAN}",
        relation="plans_to",
        says="will {object}",
        when=When.PLAN,
        needs_date=True,
    ),
    Rule(
        "will",
        r"will (?P<object>(?:be )?(?:start (?!thinking)|begin|move|marry|graduate|starting|moving|graduating|travel|traveling|attend|attending|host|hosting) .+)",
        relation="plans_to",
        says="will {object}",
        when=When.PLAN,
    ),
    Rule(
        "plan|hope|intend",
        rf"(?:plan|hope|intend) (?:on |to ){_PLAN}",
        relation="plans_to",
        says="plans to {object}",
        when=When.PLAN,
    ),
    Rule(
        "want|aspire|dream",
        rf"(?:want to|aspire to|dream of) {_PLAN}",
        relation="wants_to",
        says="wants to {object}",
        when=When.PLAN,
        confidence=0.75,
    ),
    Rule(
        "decided|have",
        rf"(?:have )?decided to {_PLAN}",
        relation="plans_to",
        says="decided to {object}",
    ),
    Rule(
        "have",
        r"have (?P<object>an? (?:[\w'-]+ ){0,3}(?:appointment|interview|meeting|exam|test|concert|gig|show|recital|flight|trip|date|competition|game|match|performance|wedding|party|deadline|presentation|reunion|surgery|check-?up|class|workshop|race|tournament)(?: coming up)?(?: (?:with|for|at|in|to) .+)?)",
        relation="plans_to",
        says="has {object}",
        when=When.PLAN,
        needs_date=True,
    ),
    Rule(
        "am",
        rf"am (?P<object>(?!(?:{_NOT_AHEAD})\b)\w{{2,12}}ing .+)",
        relation="plans_to",
        says="is {object}",
        when=When.PLAN,
        needs_date=True,
    ),
    Rule(
        "am",
        r"am (?:looking forward to|excited (?:for|about)) (?P<object>(?!(?:seeing|hearing|having|being|getting|doing|working|continuing)\b)(?:(?:my|our|an?) .+|\w+ing .+))",
        relation="looks_forward_to",
        says="is looking forward to {object}",
        when=When.PLAN,
        confidence=0.7,
    ),
    Rule(
        "=my",
        r"my (?:next |main |biggest |big |ultimate |long-term |current )?(?P<aim>goal|dream|plan|ambition|aim|wish|mission|new year's resolution|resolution) is to (?P<object>(?!(?:be happy|keep going|do my best)\b).+)",
        relation="wants_to",
        says="has the {aim} to {object}",
        when=When.PLAN,
        importance=6,
    ),
)

_NOT_AN_EVENT = (
    "difference|mistake|point|decision|choice|note|list|deal|plan|few|lot|bit|good|great|point|guy|man|woman|someone|"
    "friend of|way|start|living|mess|promise|change|fool|story about|joke|big deal|move|best|mind|great team|"
    "(?:[\\w-]+ ){0,2}(?:stuff|things|colou?r)|(?:[\\w-]+ )?(?:look|break|chance|shot|try|go|photo|photos|pic|pics|picture|pictures|snap|step|while|moment|minute|second|seat|nap|"
    "team|impact|sense|hit|turn|laugh|time|toll|risk|leap|peek|stand|breath|thing|feeling|glimpse|ton|hand|part|hope|hopes|"
    "recommendation|advice|interest|word|suggestion|tip|wish|wishes|memory|memories|heart|temper|patience|mark|impression)"
)
_HELD = (
    "picnic|party|barbecue|bbq|baby|operation|surgery|accident|interview|audition|wedding|performance|gig|recital|tournament|"
    "conversation with|talk with|meeting with|setback|miscarriage|breakup|break-up|crash|heart attack|stroke|fight with|"
    "vacation|holiday|day out|family reunion|reunion|sleepover|garage sale|yard sale|bake sale|fundraiser|exhibition|art show|road trip"
)
_BEFALLS = (
    "accepted|promoted|hired|fired|laid off|injured|mentored|invited|selected|chosen|diagnosed|published|nominated|rejected|"
    "robbed|mugged|elected|arrested|evicted|scammed|furloughed|awarded|transferred|admitted|recruited|interviewed|scouted"
)
_NOT_AN_ACT = (
    "needed|wanted|liked|loved|hated|enjoyed|believed|seemed|looked|sounded|wished|hoped|planned|guessed|realized|realised|noticed|"
    "agreed|appreciated|missed|supposed|wondered|expected|preferred|imagined|chatted|asked|mentioned|reminded|figured|assumed|"
    "promised|used|happened|doubted|deserved|ended|kept|tended|managed|struggled|cared|worried|feared|reached|turned|dreamed|dreamt|"
    "had|did|was|were|got|felt|thought|knew|said|told|meant|let|heard|understood|remembered|forgot|swamped|stoked|pumped|stressed|tired"
)
EVENTS = (
    Rule(
        "got",
        r"got (?P<object>married|engaged|divorced)(?: .*)?",
        relation="marital_status",
        says="got {object}",
        importance=7,
        starts=True,
    ),
    Rule(
        "got",
        r"got (?P<object>(?:an? |my |the |accepted |hired |laid off|fired|injured|sick|a new ).*)",
        relation="got",
        says="got {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        "got|was",
        rf"(?P<past>got|was) (?P<object>(?:{_BEFALLS})(?: (?:as|at|by|for|from|in|into|to|with) .+)?)",
        relation="{past}",
        says="{past} {object}",
        when=When.EVENT,
        importance=6,
    ),
    Rule(
        "got",
        r"got (?P<object>(?:an? (?:temp|temporary|part-time|full-time|summer|weekend|side) job|another (?:dog|cat|pet|puppy|kitten|turtle)|a (?:raise|promotion|scholarship|grant|loan|mortgage|tattoo|degree|certificate|diploma|license|licence|job offer)).*)",
        relation="got",
        says="got {object}",
        when=When.EVENT,
    ),
    Rule(
        "got",
        r"got to (?P<object>(?:volunteer|teach|meet|visit|see|play|perform|speak|attend|watch|work|help|try|ride|drive|feed|swim|travel|interview|host|record|show|sing|dance|fly|climb) .+)",
        relation="got_to",
        says="got to {object}",
        when=When.EVENT,
        confidence=0.75,
    ),
    Rule(
        "got|had",
        r"(?P<past>got|had) (?:the|a) (?P<chance>chance|opportunity) to (?P<object>.+)",
        relation="{past}",
        says="{past} the {chance} to {object}",
        when=When.EVENT,
        confidence=0.75,
    ),
    Rule(
        "had",
        r"had to (?P<object>(?:shut down|cancel|sell|move|quit|close|give up|take a break|take time|postpone|reschedule|drop out|cut|replace|rebuild|start over|repair|evacuate|undergo|stop|let go)\b.*)",
        relation="had_to",
        says="had to {object}",
        when=When.EVENT,
    ),
    Rule(
        "was",
        r"was able to (?P<object>(?!be|see|do|get|make|have|find|share|give|keep\b)\w+ .+)",
        relation="was_able_to",
        says="was able to {object}",
        when=When.EVENT,
        confidence=0.75,
    ),
    Rule(
        "had",
        rf"had (?P<object>an? (?:[\w'-]+ ){{0,3}}(?:{_HELD})\b.*)",
        relation="had",
        says="had {object}",
        when=When.EVENT,
    ),
    Rule(
        "got|bought",
        r"(?P<past>got|bought) (?P<object>(?:an? new |myself an? |my first |new ).+)",
        relation="bought",
        says="{past} {object}",
        when=When.EVENT,
    ),
    Rule(
        _LASTING,
        rf"(?P<past>{_LASTING}) (?P<particle>{_PARTICLES}) {OBJECT}",
        relation="{past} {particle}",
        says="{past} {particle} {object}",
        when=When.EVENT,
    ),
    Rule(
        _LASTING,
        rf"(?P<past>{_LASTING}) (?:(?!to\b|up\b|out\b|off\b|in$|on$|over$)){OBJECT}",
        relation="{past}",
        says="{past} {object}",
        when=When.EVENT,
    ),
    Rule(
        _DATED,
        rf"(?P<past>{_DATED}) (?P<particle>{_PARTICLES}) {OBJECT}",
        relation="{past} {particle}",
        says="{past} {particle} {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        _DATED,
        rf"(?P<past>{_DATED}) (?:(?!up\b|off\b|down\b|back\b|away\b|home\b|ahead\b|over\b)){OBJECT}",
        relation="{past}",
        says="{past} {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        f"{_DATED}|signed|found|heard",
        rf"(?P<past>went to|went on|participated in|competed in|applied (?:to|for)|set up|picked up|signed up for|volunteered at|worked on|tried out|(?!had |went |participated |competed |applied |set |signed |volunteered )(?:{_DATED}|found|heard)(?: (?:with|at|for|in|into|through))?) (?P<object>(?:(?:an?|my|our|some|(?:this|that|these|those)(?= (?:[\w'-]+ ){{3}})) (?!(?:{_NOT_AN_EVENT})\b)|(?-i:[A-Z])).+)",
        relation="{past}",
        says="{past} {object}",
        when=When.EVENT,
        confidence=0.7,
    ),
    Rule(
        "tried",
        rf"tried my hand at {OBJECT}",
        relation="tried",
        says="tried their hand at {object}",
        when=When.EVENT,
    ),
    Rule(
        "was",
        r"was (?P<place>at|in) (?P<object>(?:an? |the |my |(?-i:[A-Z])).+)",
        relation="was {place}",
        says="was {place} {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        "=past",
        rf"(?P<past>(?!(?:{_NOT_AN_ACT})\b)[a-z]+)(?: (?P<particle>{_PARTICLES}|together|off|down|over|about|by))? (?:(?!to\b|out\b|away\b|back\b|that\b){OBJECT})",
        relation="{past} {particle}",
        says="{past} {particle} {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        "did",
        r"did (?P<object>(?:an? |my |some |the |yoga|karate).+)",
        relation="did",
        says="did {object}",
        when=When.EVENT,
        needs_date=True,
    ),
    Rule(
        "have",
        r"have (?P<past>started|joined|finished|adopted|bought|signed up for|quit|stopped|completed|published|launched|opened|enrolled in|graduated from) (?P<object>.+)",
        relation="{past}",
        says="has {past} {object}",
        when=When.EVENT,
    ),
    Rule(
        "have",
        rf"have (?P<past>acquired|developed|met|created|built|written|painted|drawn|organized|organised|raised|received|gotten|recorded|baked|cooked|worked with|worked on|worked for|volunteered at|participated in|performed|hosted|taught|planted|visited|designed|made|seen|read|watched|ordered|lost|found|won|applied (?:to|for)|donated) (?P<object>(?:(?:an?|my|our|some|several|two|three|four|five|many) (?!(?:{_NOT_AN_EVENT})\b)|(?-i:[A-Z])).+)",
        relation="{past}",
        says="has {past} {object}",
        when=When.EVENT,
        confidence=0.7,
    ),
    Rule(
        "have",
        r"have been (?P<object>(?:reading|painting|writing|running|hiking|cooking|baking|swimming|travelling|traveling|drawing|dancing|practicing|practising|exercising|gaming|gardening|volunteering|cycling|knitting|meditating|studying)) (?:a lot|so much|quite a bit|more|nonstop|every day)\b.*",
        relation="is_doing",
        says="has been {object} a lot",
        confidence=0.75,
    ),
    Rule(
        "have",
        r"have (?:been|travelled|traveled) to (?P<object>(?-i:[A-Z]).+)",
        relation="visited",
        says="has been to {object}",
        when=When.EVENT,
        entity="place",
    ),
    Rule(
        "have",
        r"have never (?P<past>been to|tried|seen|visited|read|played|eaten|learned|had) (?P<object>.+)",
        relation="never {past}",
        says="has never {past} {object}",
    ),
    Rule(
        "stopped|quit",
        r"(?P<past>stopped|quit) (?P<object>\w+ing\b.*)",
        relation="stopped",
        says="{past} {object}",
        subtype="habit",
        starts=True,
    ),
    Rule(
        "gave",
        rf"gave up (?:on )?{OBJECT}",
        relation="stopped",
        says="gave up {object}",
        subtype="habit",
        starts=True,
    ),
)

HABITS = (
    Rule(
        "play",
        r"play (?P<object>(?:the )?(?!with|along|around|for|a (?:role|part)|games? with)[\w' -]+?)(?: (?P<times>every .+|on \w+days|twice .+|once .+))?",
        relation="plays",
        says="plays {object} {times}",
        subtype="habit",
        brief=True,
    ),
    Rule(
        "=habit",
        rf"(?:(?P<often>{_FREQUENT}) )?{_VERB}(?P<particle> (?:to|for|on|in|at|with|up|out))?(?: (?P<object>.*?))?,? {_TIMES}.*",
        relation="does_regularly",
        says="{often} {verb} {particle} {object} {times}",
        subtype="habit",
        value="{base} {particle} {object}",
    ),
    Rule(
        _FREQUENT,
        rf"(?P<often>{_FREQUENT}) {_VERB} {OBJECT}",
        relation="does_regularly",
        says="{often} {verb} {object}",
        subtype="habit",
        value="{base} {object}",
        confidence=0.75,
    ),
    Rule(
        "never",
        r"never (?P<verb>eat|drink|smoke|use|watch|travel|fly|cook|drive|skip|buy|wear|play|read|work) (?P<object>.+)",
        relation="never_does",
        says="never {verb} {object}",
        subtype="habit",
        value="{base} {object}",
    ),
    Rule(
        "am",
        rf"am (?P<doing>{_PURSUIT}) (?P<object>{_NOT_PURSUIT}\w.+)",
        relation="is_doing",
        says="is {doing} {object}",
        value="{doing} {spoken}",
        confidence=0.75,
    ),
    Rule(
        "have",
        rf"have been (?P<doing>{_PURSUIT}|going to) (?P<object>{_NOT_PURSUIT}\w.+)",
        relation="is_doing",
        says="has been {doing} {object}",
        value="{doing} {spoken}",
        confidence=0.75,
    ),
    Rule(
        "have",
        rf"have been busy (?:with )?(?P<object>{_NOT_PURSUIT}(?:\w+ing\b|my |an? |writing ).*)",
        relation="is_doing",
        says="has been busy {object}",
        confidence=0.75,
    ),
    Rule(
        "am",
        r"am (?P<object>(?:part|an? (?:\w+ )?member) of (?:an?|the|my|our) (?!(?:\w+ )?(?:difference|problem|solution|journey|change|team|family|world|community)\b).+)",
        relation="is",
        says="is {object}",
    ),
    Rule("am", rf"am friends with {OBJECT}", relation="friend", says="is friends with {object}"),
    Rule(
        "always|look",
        r"(?:always )?look forward to (?P<object>(?:my|our) .+)",
        relation="looks_forward_to",
        says="looks forward to {object}",
        subtype="habit",
    ),
    Rule(
        "try",
        r"try to (?P<object>(?!(?:be|make|keep|do|stay|see|think|get|look|remember|live|focus|never)\b)\w+ .+)",
        relation="tries_to",
        says="tries to {object}",
        subtype="habit",
        confidence=0.7,
    ),
    Rule(
        "stay|keep",
        r"(?P<verb>stay|keep) (?P<how>(?:myself )?(?:motivated|fit|sane|focused|in shape|healthy|organized|organised|on track|calm|busy|warm)) (?P<by>by|with) (?P<object>.+)",
        relation="keeps_well",
        says="{verb} {how} {by} {object}",
        subtype="habit",
        confidence=0.75,
    ),
    Rule(
        "will",
        r"will (?P<how>never forget|always remember) (?P<object>(?:my|our|the (?:day|time|first|trip|night|summer)) .+)",
        relation="remembers",
        says="will {how} {object}",
        confidence=0.7,
    ),
    Rule(
        _DOES,
        rf"(?P<verb>{_DOES}) {OBJECT}",
        relation="does",
        says="{verb} {object}",
        subtype="habit",
        value="{base} {object}",
        confidence=0.7,
    ),
    Rule(
        "use",
        r"use (?P<object>(?:an? |my |[\w-]+ (?:to|for) ).+)",
        relation="uses",
        says="uses {object}",
        subtype="habit",
        confidence=0.7,
    ),
    Rule(
        "used",
        r"used to (?P<object>(?!be\b|it|that|this|have (?!an? )|think|feel).+)",
        relation="used_to",
        says="used to {object}",
    ),
)

_MISHAP = (
    "crashed|broke down|exploded|froze|flooded|burned down|burnt down|got stolen|was stolen|got broken into|was broken into|"
    "got hacked|was hacked|got cancelled|was cancelled|got canceled|was canceled|got pushed back|was pushed back|got postponed|"
    "was postponed|got delayed|was delayed|got rejected|was rejected|got accepted|was accepted|got published|was published|got approved|"
    "was approved|got picked up|was picked up|got damaged|was damaged|was destroyed|got destroyed|sold out|went viral|"
    "was hit by|got hit by|opened|closed|failed"
)
LAST = (
    Rule(
        "=my",
        rf"my (?P<thing>(?!(?:heart|eyes?|mind|jaw|dreams?|hopes?|god|voice|spirits?|{_KIN})\b)[\w'-]+(?: [\w'-]+){{0,2}}) (?P<object>(?:{_MISHAP})\b.*)",
        relation="had_happen",
        says="says that their {thing} {object}",
        value="{thing} {object}",
        when=When.EVENT,
        own_only=True,
    ),
    Rule(
        "=my",
        rf"my (?P<thing>(?!(?:point|question|worry|only)\b)[\w-]+(?: [\w-]+){{0,2}}) (?:is|are) (?P<how>about|full of|called|named|based on|made of|dedicated to|inspired by) {OBJECT}",
        relation="{thing}",
        says="says that their {thing} is {how} {object}",
        value="{how} {object}",
        own_only=True,
    ),
    Rule(
        "=my",
        r"my (?P<thing>email|email address|phone number|address|pronouns|zodiac sign|star sign|blood type|height|shoe size|major|religion|nationality|time ?zone|hobby|hobbies|diet|hometown|home town|car|job title|specialty|weakness|strength|pet peeve|passion|side hustle) (?:is|are) (?P<object>.+)",
        relation="{thing}",
        says="has {object} as {thing}",
        own_only=True,
    ),
)

ACTIVITIES = (*HABITS[:1], *PLANS, *EVENTS, *HABITS[1:], *LAST)
