"""Language by script, and which characters are written without spaces between words."""

from __future__ import annotations

import re

HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = r"\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
THAI = r"\u0e00-\u0e7f"
UNSPACED = HAN + KANA + THAI
"""Inside of a character class: scripts without spaces between words."""

SAMPLE = 4000
"""Characters looked at: the script of a text does not change after a page."""

_SCRIPTS = {
    "han": re.compile(f"[{HAN}]"),
    "kana": re.compile(f"[{KANA}]"),
    "ko": re.compile(r"[\uac00-\ud7af\u1100-\u11ff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
    "en": re.compile(r"[A-Za-z\u00c0-\u024f]+"),
}


def language_of(text: str | None) -> str:
    """`zh`, `ja`, `ko`, `ar`, `hi`, `ru`, `en` (any Latin script) or `other`, by the most frequent script.

    One Latin word counts as much as two characters of a script without spaces, so that a Chinese answer full of product
    names is still Chinese.

    >>> language_of("退款需要7天 (AirPods Pro)")
    'zh'
    >>> language_of("返品は30日以内です")
    'ja'
    """
    sample = (text or "")[:SAMPLE]
    counts = {name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()}
    han, kana = counts.pop("han"), counts.pop("kana")
    counts["en"] *= 2
    counts["ja" if kana * 5 >= han and kana else "zh"] = han + kana
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else "other"


_PAIRS = (
    "無无沒没對对資资訊讯檔档內内說说確确認认實实並并從从給给關关於于記记錄录簡简單单據据這这個个僅仅還还問问題题應应該该覽览"
    "願愿麼么為为請请續续選选項项來来時时現现與与後后樣样數数詢询檢检尋寻獲获難难導导處处陳陈彙汇總总覆复複复證证嗎吗瞭了"
    "們们國国會会學学發发過过開开長长東东車车門门見见電电點点機机經经進进動动當当業业產产種种條条員员義义務务興兴設设計计價价錢钱"
    "費费買买賣卖貨货質质購购貴贵財财貿贸貸贷負负責责貢贡賬账賠赔賽赛贊赞億亿萬万兩两雙双幾几週周歲岁歷历曆历區区縣县鄉乡鎮镇"
    "灣湾廣广場场圖图書书報报紙纸畫画劇剧藝艺術术樂乐聽听聲声視视網网絡络線线級级終终結结組组織织紀纪約约納纳純纯紅红綠绿黃黄"
    "藍蓝顏颜馬马鳥鸟魚鱼龍龙貓猫豬猪雞鸡鴨鸭麵面飯饭飲饮藥药醫医療疗養养體体頭头腦脑臉脸顯显顧顾類类頁页順顺預预領领頻频額额"
    "風风飛飞運运達达遠远遲迟適适選选遺遗邊边遊游連连還还違违鐵铁鐘钟鋼钢銀银銅铜錯错鎖锁鏡镜針针釘钉鈕钮閉闭間间閱阅隊队陽阳"
    "陰阴際际險险隨随隱隐離离雜杂雲云靈灵靜静韓韩響响頂顶須须歡欢殘残殺杀氣气漢汉漲涨減减測测滿满滅灭熱热燈灯營营爭争爺爷狀状"
    "獎奖獨独獸兽環环當当畢毕異异疊叠盡尽監监盤盘碼码礎础禮礼積积穩稳窮穷競竞筆笔節节範范築筑籃篮糧粮緊紧緒绪練练縮缩績绩繼继"
    "罰罚羅罗職职聯联聖圣腸肠膚肤臺台舉举舊旧莊庄華华葉叶蓋盖蘇苏蘭兰蟲虫補补裝装製制規规覺觉親亲觀观觸触訂订訓训託托評评詞词"
    "試试詩诗話话誰谁課课調调談谈論论議议護护譯译讀读變变讓让豐丰趙赵趕赶躍跃軍军軟软較较載载輕轻輛辆輪轮輸输轉转辦办農农"
    "鄰邻釋释採采錶表鍵键閣阁階阶隻只雖虽頗颇願愿驗验驚惊騎骑驅驱鮮鲜麗丽齊齐齡龄齒齿傳传債债傷伤傾倾僱雇儀仪儘尽優优儲储兒儿"
    "劃划劉刘劍剑勝胜勞劳勢势勵励勸劝協协卻却廠厂壓压厭厌參参員员啟启喪丧喬乔嚴严園园圍围圓圆團团執执堅坚報报塊块壞坏壯壮夢梦"
    "夾夹奪夺奮奋婦妇媽妈孫孙寧宁審审寫写寬宽寶宝將将專专層层屬属島岛嶺岭幣币帥帅師师帳帐帶带幫帮庫库廢废廳厅張张強强彈弹徑径"
    "徵征復复態态慶庆憂忧憑凭懷怀懶懒戰战戲戏戶户拋抛掃扫掛挂揚扬換换損损搖摇搶抢摺折撥拨擁拥擇择擊击擔担擴扩擺摆攝摄敗败敵敌"
    "斷断無无晝昼暫暂暢畅極极楊杨標标樓楼構构槍枪權权橋桥欄栏歸归歐欧決决沖冲況况準准溫温滾滚潔洁潛潜澤泽濟济濃浓濕湿灑洒災灾"
    "煙烟燒烧爾尔牆墙牽牵犧牺瓊琼畝亩痛痛瘋疯皺皱睜睁礦矿禍祸稅税稱称穀谷竊窃糾纠紹绍統统絕绝絲丝維维編编緣缘縫缝縱纵繁繁繪绘"
    "纖纤聰聪肅肃脅胁勝胜臨临艦舰蒼苍蔣蒋薦荐藏藏蝦虾術术衛卫衝冲裡里裏里襲袭誌志誤误誠诚誕诞誘诱語语謀谋講讲謝谢識识譜谱貝贝"
    "販贩貧贫貪贪賀贺賓宾賞赏賢贤賴赖踐践蹤踪軌轨輔辅輩辈輯辑轟轰遞递遷迁遜逊郵邮醜丑鋪铺錄录鋒锋鑒鉴鑑鉴鑽钻長长閃闪閒闲聞闻"
    "闆板闊阔隸隶雞鸡霧雾項项頒颁飄飘餐餐餘余館馆駐驻駕驾騙骗鬥斗鬧闹鬱郁鳳凤鴻鸿鹽盐黨党龐庞"
    "訴诉繫系號号簽签則则銷销習习纜缆備备註注冊册嶼屿灘滩濱滨滯滞屆届係系幹干銜衔償偿"
)
_SIMPLE = str.maketrans(_PAIRS[::2], _PAIRS[1::2])


def simplified(text: str) -> str:
    """The text with the usual traditional Chinese characters mapped to simplified ones, one to one; spans stay valid.

    >>> simplified("根據資料，無法確定")
    '根据资料，无法确定'
    """
    return text if text.isascii() else text.translate(_SIMPLE)
